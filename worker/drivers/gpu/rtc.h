// The run-time compilers NVRTC and hipRTC, two libraries with the same interface that are opened by name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worker/drivers/gpu/code.h"

namespace wl {

// Returns "" when the library for a family ("cuda", "hip") is installed and knows the architecture ("sm_90a"),
// otherwise what is missing.
std::string rtc_missing(const std::string& family, const std::string& architecture);
// returns name and version, e.g. "nvrtc=13.0"; "" if the library is not installed
std::string rtc_version(const std::string& family);
// Returns the options of a compilation.
std::vector<std::string> rtc_flags(const std::string& family, const std::string& architecture);
absl::StatusOr<GpuUnit> compile_rtc(std::span<const Source> sources, const std::string& family,
                                    const std::string& architecture);

}  // namespace wl

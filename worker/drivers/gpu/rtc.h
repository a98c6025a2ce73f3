// The run-time compilers NVRTC and hipRTC: two libraries with the same interface, which are opened by name at run time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worker/drivers/gpu/code.h"

namespace wl {

// Returns "" if the library for a family ("cuda", "hip") is installed and knows the architecture ("sm_90a"), otherwise
// a message about what is missing.
std::string rtc_missing(const std::string& family, const std::string& architecture);
// Returns name and version, e.g. "nvrtc=13.0"; "": the library is not installed.
std::string rtc_version(const std::string& family);
// Returns the compiler options for an architecture.
std::vector<std::string> rtc_flags(const std::string& family, const std::string& architecture);
// Compiles as compile_gpu() (code.h) does, for sources that call no library. rtc_missing() must have returned "".
// Internal: the compiler made no code.
absl::StatusOr<GpuUnit> compile_rtc(std::span<const Source> sources, const std::string& family,
                                    const std::string& architecture);

}  // namespace wl

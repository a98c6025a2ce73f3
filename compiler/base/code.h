// The text form of what a compiler made of a GPU kernel, as it appears in stores, reports and logs:
// "registers=66 spill=0 stack=0 shared=0+4096 load=16..16 store=16..16 cas=0 occupancy=0.438"
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// The largest number of bytes a lane may spill to device memory. A few registers saved over a call cost nothing, but a
// tile that lives in device memory is slow. Workers reject kernels that spill more, and strategies avoid them.
inline constexpr int64_t kMostSpill = 32;

std::string code_text(const CodeFacts& code);
// Parses the output of code_text. InvalidArgument names the part that is malformed.
absl::StatusOr<CodeFacts> parse_code(std::string_view text);

}  // namespace wl

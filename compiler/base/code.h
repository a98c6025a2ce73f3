// The text form of CodeFacts (what a compiler made of a GPU kernel: registers, spills, access widths), as it appears in
// stores, reports and logs:
// "registers=66 spill=0 stack=0 shared=0+4096 load=16..16 store=16..16 cas=0 occupancy=0.438"
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// The largest number of bytes that a lane (one thread) may spill to device memory. To spill a few registers around a
// function call costs nothing, but a kernel is slow if it keeps a whole tile in device memory. Workers reject kernels
// that spill more, and search strategies avoid such kernels.
inline constexpr int64_t kMostSpill = 32;

std::string code_text(const CodeFacts& code);
// Parses the output of code_text. An InvalidArgument error quotes the text and gives the number of the malformed field.
absl::StatusOr<CodeFacts> parse_code(std::string_view text);

}  // namespace wl

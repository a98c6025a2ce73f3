// Text of what a compiler made of a GPU kernel, as a store's row, a report and a person read it:
//   "registers=66 spill=0 stack=0 shared=0+4096 load=16..16 store=16..16 cas=0 occupancy=0.438"
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// Bytes of device memory that a lane may spill to: a few registers saved over a call cost nothing, a tile that lives
// there does. Workers reject what spills more, and strategies keep away from it.
inline constexpr int64_t kMostSpill = 32;

std::string code_text(const CodeFacts& code);
// What code_text wrote; InvalidArgument names the part that is not.
absl::StatusOr<CodeFacts> parse_code(std::string_view text);

}  // namespace wl

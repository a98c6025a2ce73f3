// What every kernel must satisfy before it may be interpreted or printed, the kernel's text, and its meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

// Variables in scope, tiles defined before use, shapes that broadcast, dtypes that agree, no store to an input, scratch
// buffers that do not overlap. The message shows the instruction. A lowering that fails it is a bug, not bad input.
absl::Status verify(const Kernel& kernel);

std::string print(const Kernel& kernel);
std::string print(const Kernel& kernel, const Instr& instr);
// The kernel that prints as `text`, verified: parse_kernel(print(k)) == k. Never crashes, whatever the bytes, and takes
// time and memory proportional to them. Errors say "line L:" first.
absl::StatusOr<Kernel> parse_kernel(std::string_view text);

// The meaning: instructions run one after the other, whole tiles at a time, blocks in order, teams in step. Buffers
// hold the values of the globals in call order, rounded to their dtypes; outputs are overwritten. Scratch starts as NaN
// in every block. Accesses outside a buffer are an error that shows the instruction.
absl::Status interpret(const Kernel& kernel, std::vector<std::vector<double>>& buffers);

}  // namespace wl

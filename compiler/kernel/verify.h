// Checks kernels before they are interpreted or printed, converts them to text and back, and interprets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

// Returns an error unless variables are in scope, tiles are defined before they are used, shapes broadcast, dtypes
// agree, inputs are not stored to, scratch buffers do not overlap while both are needed, and so on. The message shows
// the instruction. If a kernel from lowering fails, the lowering has a bug; bad input cannot be the cause.
absl::Status verify(const Kernel& kernel);

std::string print(const Kernel& kernel);
std::string print(const Kernel& kernel, const Instr& instr);
// Parses and verifies the kernel that prints as `text`: parse_kernel(print(k)) == k. Works for any bytes, and takes
// time and memory proportional to them. Errors begin with "line L:".
absl::StatusOr<Kernel> parse_kernel(std::string_view text);

// Interprets the kernel: instructions one after the other, each on whole tiles; blocks in order; teams in step.
// `buffers` hold the values of the globals in call order, rounded to their dtypes; outputs are overwritten. Scratch
// starts as NaN in every block. An access outside a buffer is an error that shows the instruction.
absl::Status interpret(const Kernel& kernel, std::vector<std::vector<double>>& buffers);

}  // namespace wl

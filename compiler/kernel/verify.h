// Checks of a kernel before it is interpreted or printed, the kernel's text, and the kernel's meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

// An error unless variables are in scope, tiles are defined before they are used, shapes broadcast, dtypes agree,
// inputs are not stored to, scratch buffers do not overlap while both are needed, and so on. The message shows the
// instruction. A kernel from lowering that fails is a bug of the lowering, not bad input.
absl::Status verify(const Kernel& kernel);

std::string print(const Kernel& kernel);
std::string print(const Kernel& kernel, const Instr& instr);
// Parses and verifies the kernel that prints as `text`: parse_kernel(print(k)) == k. Works for any bytes, and takes
// time and memory proportional to them. Errors begin with "line L:".
absl::StatusOr<Kernel> parse_kernel(std::string_view text);

// Runs the kernel: instructions one after the other, on whole tiles, blocks in order, teams in step. `buffers` hold the
// values of the globals in call order, rounded to their dtypes; outputs are overwritten. Scratch starts as NaN in every
// block. An access outside a buffer is an error that shows the instruction.
absl::Status interpret(const Kernel& kernel, std::vector<std::vector<double>>& buffers);

}  // namespace wl

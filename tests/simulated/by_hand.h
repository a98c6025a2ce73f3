// Kernels that the compiler's lowering never makes, built by hand for the simulated GPU. Their results there are
// compared with those of the interpreter.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl::testing {

// Returns a kernel for a row of kTargets that simulates a GPU. It has `grid` blocks of `teams` teams of `team` threads,
// an empty body, an input "x" (p0) of `inputs` elements and an output "y" (p1) of `outputs` elements.
Kernel kernel_by_hand(const std::string& target, int team, int teams, int64_t grid, DType dtype, int64_t inputs,
                      int64_t outputs);

// Compiles the kernels together and runs each of them; element i of an input is i. Returns for each kernel "", or the
// error by which the simulator stops it, or the first element that differs from interpret(). `change` may replace a
// kernel's text.
using ChangeText = std::function<std::string(size_t kernel, const std::string& text)>;
std::vector<std::string> simulated_differences(const std::vector<Kernel>& kernels, const ChangeText& change = nullptr);

}  // namespace wl::testing

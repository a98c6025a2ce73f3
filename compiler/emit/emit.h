// Prints a Kernel as Source for its target. The printer does not know the target's language: the body is neutral text
// that uses names which every prelude (the text before the kernel) defines.
#pragma once

#include "compiler/base/records.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// Returns the kernel's text with its prelude, entry symbol and launch sizes; Unimplemented where the printer cannot
// print the kernel. The same arguments give the same bytes. `group`: the hash of the graph that the kernel computes. It
// enters the entry symbol, because kernels of two graphs may have the same text: one reads a part of a larger input
// where the other reads a whole input.
absl::StatusOr<Source> emit(const Kernel& kernel, const Machine& machine, std::string_view group = {});

}  // namespace wl

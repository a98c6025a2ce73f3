// emit: prints a Kernel as Source for its target. The printer does not know which target it prints: the body is
// target-neutral text over the names that every prelude defines.
#pragma once

#include "compiler/base/records.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// The kernel's text with its prelude, entry symbol and launch sizes. Same arguments, same bytes. `group`: the hash of
// the graph that it computes, by which kernels of the same text have different symbols: what one reads of a part of a
// larger input another reads of a whole one.
absl::StatusOr<Source> emit(const Kernel& kernel, const Machine& machine, std::string_view group = {});

}  // namespace wl

// Prints a Kernel as Source for its target. The printer does not know the target's language: it prints text whose names
// are defined by the prelude of every target (the text before the kernel).
#pragma once

#include "compiler/base/records.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// Returns the kernel's text with its prelude, entry symbol and launch sizes; Unimplemented if the printer cannot print
// the kernel. The same arguments give the same bytes. `group` is the hash of the graph that the kernel computes. It is
// part of the entry symbol, because kernels of different graphs may have the same text, for example if one reads a part
// of a larger input and the other a whole input.
// `listing`: the graphs of the kernel, as listing_of() in compiler/schedule/lower returns them. With a listing, the
// kernel's function begins with the listing as comments, and further comments say to which nodes values and loops
// belong. Without one, there are no such comments. The rest of the text, and the entry symbol, are the same in both
// cases.
absl::StatusOr<Source> emit(const Kernel& kernel, const Machine& machine, std::string_view group = {},
                            const NodeListing& listing = {});

}  // namespace wl

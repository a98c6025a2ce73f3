// Stitched groups (plan/stitch.h): every stage is lowered as a kernel of its own, for one block's share; the kernels
// become one. Where a stage met its whole inputs and outputs it now meets them moved by the block's place; what stages
// pass on lies in scratch; a stage's blocks are turns of a loop.
#pragma once

#include "compiler/lower/kernel.h"
#include "compiler/plan/space.h"

namespace wl {

absl::StatusOr<Kernel> lower_stitched(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);

}  // namespace wl

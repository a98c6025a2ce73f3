// Packed groups (plan/pack.h): every member is lowered as a kernel of its own, and the kernels become one. With lanes
// each is a section, which its own blocks run and no others; on a CPU each is a loop over a block's share of its
// blocks. What members have in scratch may overlap: a block is done with one before it meets the next.
#pragma once

#include "compiler/lower/kernel.h"
#include "compiler/plan/space.h"

namespace wl {

absl::StatusOr<Kernel> lower_packed(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine);

}  // namespace wl

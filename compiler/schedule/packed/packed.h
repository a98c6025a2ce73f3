// Packed groups (plan/pack.h): what can be chosen, and the kernel. Every member is lowered as a kernel of its own, and
// the kernels become one. On a GPU each is a section that only its own blocks run; on a CPU each is a loop over a
// block's share of its blocks. The scratch of members may overlap, since a block runs one member after the other.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/pack.h"
#include "compiler/schedule/space.h"

namespace wl {

// The own schedule of members of a kind within one of the whole; `space` is theirs, `teams`: of a GPU.
Schedule member_schedule(const Space& space, int kind, const Schedule& whole, bool teams);
// Without seeds where no schedule suits all.
Space space_packed(const Domain& domain, const Machine& machine);

absl::StatusOr<Kernel> lower_packed(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine);

}  // namespace wl

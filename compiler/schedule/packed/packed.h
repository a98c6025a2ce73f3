// Packed groups, in which one kernel computes several unconnected members (domain/pack.h): the search space, and the
// kernel. Every member is lowered as a kernel of its own, and these kernels are joined to one. On a GPU each member is
// a section that only its own blocks run; on a CPU each is a loop over the share that a block has of the member's
// blocks. The scratch of members may overlap, since a block runs one member after the other.
#pragma once

#include "compiler/domain/pack.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

// Returns the schedule that members of one kind (members with equal graphs) have under a schedule of the whole group.
// `space`: the space of these members. `teams`: whether the kernel is for a GPU.
Schedule member_schedule(const Space& space, int kind, const Schedule& whole, bool teams);
// Returns the search space of a packed group. The space has no seeds if no schedule is legal for all members.
Space space_packed(const Domain& domain, const Machine& machine);

// Returns the verified kernel, or an error if the schedule is illegal for a member or if members have different
// threads.
absl::StatusOr<Kernel> lower_packed(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine);

}  // namespace wl

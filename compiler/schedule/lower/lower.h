// Makes the search space of any group, and the kernel of any schedule. Other parts of the compiler enter schedule/ by
// space_of() and lower(); each kind of kernel has a folder of its own. Nothing here depends on the model that a group
// comes from.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

// Returns the search space of a group, which depends only on the group's graph, its domain and the machine.
// InvalidArgument: the machine has no target, or no compiler for it. Unimplemented: no schedule is legal.
absl::StatusOr<Space> space_of(const Graph& group, const Domain& domain, const Machine& machine);

// Returns the verified kernel of a group under a schedule of its space. The error says why a schedule is illegal, or
// why the group cannot be one kernel.
absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine);

// Returns the listing of nodes for the comments in the code of the kernel that lower() returns. Its lines have no
// names of inputs, so that groups with the same graph_hash() have the same text.
NodeListing listing_of(const Graph& group, const Domain& domain, const Schedule& schedule);

}  // namespace wl

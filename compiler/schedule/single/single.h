// The search space, and the kernel, of a group that is one loop nest. The group's loop class and the machine decide
// which folder of schedule/ makes them.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_single(const Graph& group, const Domain& domain, const Machine& machine);
// Returns the verified kernel of a group that is one loop nest, or an error if the schedule does not fit the group or
// the machine.
absl::StatusOr<Kernel> lower_single(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine);

}  // namespace wl

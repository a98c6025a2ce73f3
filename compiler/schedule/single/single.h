// Groups that are one loop nest: what can be chosen, and the kernel. Which folder has a group's space and lowering
// follows from its loop class and the machine.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_single(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Kernel> lower_single(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine);

}  // namespace wl

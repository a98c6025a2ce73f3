// The space of schedules and the kernel of a group that is one loop nest. The group's loop class and the machine say
// which folder of schedule/ has its space and lowering.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_single(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Kernel> lower_single(const Graph& group, const Domain& domain, const Schedule& schedule,
                                    const Machine& machine);

}  // namespace wl

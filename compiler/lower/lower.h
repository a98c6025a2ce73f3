// lower: Graph of one group + schedule -> Kernel, the instruction-level form (kernel.h). Pure. An illegal schedule or a
// group that cannot be one kernel is a Status that says why. Loop classes are the shapes of loop nest that a group can
// have (plan/domain.h), one file each; none of them looks at what the ops are for.
#pragma once

#include "compiler/lower/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/plan/space.h"

namespace wl {

absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine);

}  // namespace wl

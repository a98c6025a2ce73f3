// The space of any group, and the kernel of a schedule. space_of() and lower() are the two entries to schedule/, in
// which each other folder has one kind of kernel. No folder depends on the model that an op is part of.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// The space of a group, which depends on nothing but the group's graph, its domain and the machine. InvalidArgument:
// the machine has no target, or no compiler for it. Unimplemented: no schedule is legal.
absl::StatusOr<Space> space_of(const Graph& group, const Domain& domain, const Machine& machine);

// The verified kernel of a group under a schedule of its space. An illegal schedule or a group that cannot be one
// kernel is a Status that says why.
absl::StatusOr<Kernel> lower(const Graph& group, const Domain& domain, const Schedule& schedule,
                             const Machine& machine);

}  // namespace wl

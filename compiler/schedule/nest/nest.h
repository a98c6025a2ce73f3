// Loop nests without a contraction: maps, row reductions and column reductions, for CPUs and GPUs. A space_ function
// returns the schedules that can be chosen for a group; lower_nest() makes the kernel of one schedule.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

// The search spaces of maps, row reductions and column reductions on CPUs.
Space space_map(const Graph& group, const Domain& domain, const Machine& machine);
Space space_rows(const Graph& group, const Domain& domain, const Machine& machine);
Space space_columns(const Graph& group, const Domain& domain, const Machine& machine);
// Adds the effects of the choices that such a group's lowering on CPUs obeys only in part, or not at all.
void add_cpu_nest_effects(Space& space, const Graph& group, const Domain& domain);
// The search space of maps and column reductions on GPUs: a team of threads owns a tile along the vectorised axis.
Space space_gpu_tiles(const Graph& group, const Domain& domain, const Machine& machine);
// The search space of row reductions on GPUs: a team owns a row.
Space space_gpu_rows(const Graph& group, const Domain& domain, const Machine& machine);

// Returns the kernel of one schedule. On a GPU, returns an error if the schedule does not fit the group or the machine.
absl::StatusOr<Kernel> lower_nest(const Graph& group, const Domain& domain, const Schedule& schedule,
                                  const Machine& machine);

}  // namespace wl

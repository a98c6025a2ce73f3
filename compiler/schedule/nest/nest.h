// Loop nests without a contraction: maps, row reductions and column reductions, for CPUs and GPUs. What can be chosen,
// and the kernel.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_map(const Graph& group, const Domain& domain, const Machine& machine);
Space space_rows(const Graph& group, const Domain& domain, const Machine& machine);
Space space_columns(const Graph& group, const Domain& domain, const Machine& machine);
// On GPUs. Maps and column reductions: a team owns a tile along the vector atom.
Space space_gpu_tiles(const Graph& group, const Domain& domain, const Machine& machine);
// Row reductions: a team owns a row.
Space space_gpu_rows(const Graph& group, const Domain& domain, const Machine& machine);

absl::StatusOr<Kernel> lower_nest(const Graph& group, const Domain& domain, const Schedule& schedule,
                                  const Machine& machine);

}  // namespace wl

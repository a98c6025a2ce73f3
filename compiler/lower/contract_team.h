// One contraction with elementwise work on its operands and its result, for machines with lanes. A block owns a tile of
// rows (along the last m atom) and columns (along the last n atom) of one batch element; its threads are a grid, each
// with a register tile of accumulators. K is walked in steps: both operands' parts of a step are put into shared
// memory, k outermost, their elementwise work applied; with two stages the next step is fetched into registers while
// this one is computed. What follows the contraction is computed on the accumulators.
#pragma once

#include "compiler/lower/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/plan/space.h"

namespace wl {

absl::StatusOr<Kernel> lower_team_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                           const Machine& machine);

}  // namespace wl

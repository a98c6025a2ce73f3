// What a group must be beyond one loop domain: every maker of covers asks the same question.
#pragma once

#include "compiler/plan/domain.h"

namespace wl {

inline constexpr size_t kMaxGroupAnchors = 64;  // compile time and registers

// Whether one kernel for the group does no more work than kernels for its parts would. contract_atoms: of the loops of
// the group's contraction alone (0 without one); a group that cuts its axes further would cut its tiles.
bool worthwhile(const Graph& group, const Domain& domain, const Machine& machine, size_t contract_atoms);

}  // namespace wl

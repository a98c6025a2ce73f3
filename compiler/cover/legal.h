// The test that a group of several ops must pass beyond having one loop domain. The greedy, stitched and planned covers
// use it.
#pragma once

#include "compiler/domain/domain.h"

namespace wl {

inline constexpr size_t kMaxGroupAnchors = 64;  // limits compile time and registers

// Whether one kernel for the group does no more work than kernels for its parts would. contract_atoms: how many atoms
// the loops of the group's contraction have when it is alone (0: no contraction). A group that splits the contraction's
// axes into more atoms would split its tiles, and is refused.
bool worthwhile(const Graph& group, const Domain& domain, const Machine& machine, size_t contract_atoms);

}  // namespace wl

// The test that a group of several ops must pass besides being one loop nest: its kernel must not repeat work. The
// greedy, stitched and planned covers use this test.
#pragma once

#include "compiler/domain/domain.h"

namespace wl {

// Largest number of anchors of a group; limits compile time and registers.
inline constexpr size_t kMaxGroupAnchors = 64;

// Whether one kernel for the group does no more work than separate kernels for its parts would. contract_atoms: the
// number of atoms (loops) that the group's contraction has when it is alone; 0: there is no contraction. A group with
// more atoms is refused, since its loops would split the contraction's tiles.
bool worthwhile(const Graph& group, const Domain& domain, const Machine& machine, size_t contract_atoms);

}  // namespace wl

// The phases of a group that reduces rows or columns. A phase ends where the result of a reduction is first needed, so
// the kernel traverses a row once for each phase.
#pragma once

#include <map>
#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// Whether a node is a contraction, or a reduction over some axis longer than 1; a reduction over axes of extent 1 is a
// copy.
bool is_reduction(const Graph& group, NodeId node);

struct RowPhases {
  int count = 1;
  std::vector<int> level;        // by node: number of phases that must end before its value exists
  std::vector<NodeId> reduces;   // the reductions, in node order; phase level[r] - 1 accumulates reduction r
  std::vector<int> store_phase;  // the phase of each of domain.stores
  // The sums of exp(v - max v) that are computed in the phase that finds the maximum (online softmax): sum -> maximum.
  std::map<NodeId, NodeId> online;
};
// Returns the phases of a group. `online`: compute such sums in the phase of their maximum.
RowPhases row_phases(const Graph& group, const Domain& domain, bool online = false);

}  // namespace wl

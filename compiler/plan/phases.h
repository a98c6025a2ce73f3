// The phases of a row (or column) reduction: a phase ends where a reduction's result is first needed, so a row is
// walked once for each.
#pragma once

#include <map>
#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// A reduce or contraction that sums something: a reduce over axes of extent 1 is a copy.
bool is_reduction(const Graph& group, NodeId node);

struct RowPhases {
  int count = 1;
  std::vector<int> level;        // per node: phases that must end before its value exists
  std::vector<NodeId> reduces;   // in node order; reduce r folds in phase level[r] - 1
  std::vector<int> store_phase;  // per domain.stores
  // Sums of exp(v - max v) that are taken in the walk that finds the maximum: sum -> maximum.
  std::map<NodeId, NodeId> online;
};
RowPhases row_phases(const Graph& group, const Domain& domain, bool online = false);

}  // namespace wl

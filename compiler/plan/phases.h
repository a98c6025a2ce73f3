// The phases of a reduction over rows or columns. A phase ends where the result of a reduction is first needed, so the
// kernel walks a row once for each phase.
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
  // Sums of exp(v - max v) that are computed in the phase that finds the maximum: sum -> maximum.
  std::map<NodeId, NodeId> online;
};
RowPhases row_phases(const Graph& group, const Domain& domain, bool online = false);

}  // namespace wl

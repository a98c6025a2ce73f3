// The phases of a group that reduces rows or columns. A phase ends where the result of a reduction is first needed. So
// the kernel traverses each row once per phase.
#pragma once

#include <map>
#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// Whether a node is a contraction, or a reduction over an axis longer than 1. A reduction over axes of extent 1 only
// copies.
bool is_reduction(const Graph& group, NodeId node);

struct RowPhases {
  int count = 1;
  std::vector<int> level;        // for each node: how many phases must end before its value exists
  std::vector<NodeId> reduces;   // the reductions in node order; phase level[r] - 1 computes reduction r
  std::vector<int> store_phase;  // for each entry of domain.stores: the phase that stores it
  // Maps sums of exp(v - max v) to max v, for the sums that are computed in the phase that finds the maximum (online
  // softmax).
  std::map<NodeId, NodeId> online;
};
// Returns the phases of a group. If `online` is set, sums of exp(v - max v) are computed in the phase of the maximum.
RowPhases row_phases(const Graph& group, const Domain& domain, bool online = false);

}  // namespace wl

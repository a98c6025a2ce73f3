// What each phase of a nest computes and stores, and which values a later phase reads from a row buffer.
#pragma once

#include <map>
#include <vector>

#include "compiler/plan/phases.h"

namespace wl {

struct NestPhases : RowPhases {
  std::vector<int> uses;                 // per node: readers, outputs included
  std::vector<std::vector<int>> stores;  // per phase: indices into domain.stores
  // Values of an earlier phase that a later one loads from a row buffer instead of computing again.
  std::map<NodeId, int> kept;  // -> phase that stores it
};

// keep_all: every computed value that a later phase reads is kept, not only those that are costly to compute again.
NestPhases nest_phases(const Graph& group, const Domain& domain, bool keep_all, bool online);

}  // namespace wl

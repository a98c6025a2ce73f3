// What each phase of a nest computes and stores, and which values a later phase reads from a row buffer. A phase is one
// walk over a row; it ends where the result of a reduction is first needed.
#pragma once

#include <map>
#include <vector>

#include "compiler/domain/phases.h"

namespace wl {

struct NestPhases : RowPhases {
  std::vector<int> uses;                 // for each node: how many nodes and outputs read its value
  std::vector<std::vector<int>> stores;  // for each phase: the outputs that it stores, as indices into domain.stores
  // The values that a later phase loads from a row buffer instead of computing them again.
  std::map<NodeId, int> kept;  // for each node: the phase that stores its value
};

// Finds the phases of a nest. `keep_all`: keep every computed value that a later phase reads and that varies along the
// vectorised axis, not only values that are costly to compute again. `online`: see RowPhases::online.
NestPhases nest_phases(const Graph& group, const Domain& domain, bool keep_all, bool online);

}  // namespace wl

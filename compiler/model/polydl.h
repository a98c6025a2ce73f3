// The ranker of PolyDL (arXiv 2006.02230), with which the calibrated cost model is compared: the working sets of all
// reuses are packed pessimistically into the levels of memory, and their sizes are multiplied by the latency of each
// level. How often a working set moves is not counted.
#pragma once

#include "compiler/model/reuse.h"
#include "compiler/target/target.h"

namespace wl {

struct PolydlRank {
  double cycles = 0;  // sum over the levels of working-set bytes times latency: 4 L1 + 14 L2 + 60 L3 + 84 memory
  // Orders kernels of equal `cycles`: the sum over the levels of bytes / bandwidth: L1/192 + L2/96 + L3/16 +
  // memory/55.
  double tie = 0;
  auto operator<=>(const PolydlRank&) const = default;
};
// Returns the rank of a kernel; a lower one predicts a faster kernel.
PolydlRank polydl_rank(const Reuse& reuse, const Machine& machine);

}  // namespace wl

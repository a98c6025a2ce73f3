// PolyDL's own ranker (arXiv 2006.02230), kept as the baseline that the calibrated cost has to beat: the sizes of the
// working sets of all reuses, packed pessimistically into the levels of memory, times the latency of each level. It
// never asks how often a working set moves.
#pragma once

#include "compiler/model/reuse.h"
#include "compiler/target/target.h"

namespace wl {

struct PolydlRank {
  double cycles = 0;  // 4 L1 + 14 L2 + 60 L3 + 84 memory, of bytes
  double tie = 0;     // L1/192 + L2/96 + L3/16 + memory/55
  auto operator<=>(const PolydlRank&) const = default;
};
// Lower is predicted to be faster.
PolydlRank polydl_rank(const Reuse& reuse, const Machine& machine);

}  // namespace wl

#include "compiler/model/polydl.h"

#include <set>

namespace wl {

PolydlRank polydl_rank(const Reuse& reuse, const Machine& machine) {
  // A working set is the data touched between two uses of the same data. If a reference does not move along a loop,
  // its working set has at least the bytes of one iteration of the loop, and at most those of all iterations. Working
  // sets of equal sizes count once.
  std::set<std::pair<double, double>> working_sets;  // of each working set: its most bytes, its least bytes
  for (int r = 0; r < static_cast<int>(reuse.references().size()); ++r) {
    for (int loop = reuse.references()[r].loop; loop > 0; loop = reuse.loops()[loop].parent) {
      if (reuse.loops()[loop].trips <= 1) continue;
      const double inside = reuse.touched(r, loop).elements;
      if (reuse.touched(r, reuse.loops()[loop].parent).elements > inside) continue;
      working_sets.emplace(reuse.run_bytes(loop), reuse.turn_bytes(loop));
    }
  }
  const double capacity[] = {static_cast<double>(machine.l1_bytes), static_cast<double>(machine.l2_bytes),
                             static_cast<double>(machine.l3_bytes)};
  double level[4] = {};
  for (const auto& [most, least] : working_sets) {
    int at = 0;
    for (; at < 3 && level[at] + most > capacity[at]; ++at)
      if (level[at] + least <= capacity[at]) level[at] += least;
    level[at] += most;
  }
  return {4 * level[0] + 14 * level[1] + 60 * level[2] + 84 * level[3],
          level[0] / 192 + level[1] / 96 + level[2] / 16 + level[3] / 55};
}

}  // namespace wl

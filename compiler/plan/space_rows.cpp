// Row reductions: the row is walked once for each phase, kept in an L1 buffer or read again; one thread owns a range of
// rows.
#include "compiler/plan/phases.h"
#include "compiler/plan/space_common.h"

namespace wl {

Space space_rows(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t rows = extent_of(domain, domain.parallel);
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int64_t vectors = std::max<int64_t>(1, row / machine.target->lanes);
  const int phases = row_phases(group, domain).count;
  const bool plain_rows = domain.reduced.size() == 1;  // one loop along the row, no loops around it
  Space space;
  space.axes = {
      axis_of("vector", {machine.target->lanes}),
      axis_of("unroll", {1, 2, 4, 8}, [&](int64_t u) { return u <= vectors; }),
      axis_of("accumulators", {1, 2, 4, 8}, [&](int64_t a) { return a <= vectors; }),
      // 0: keep what is dear to compute again; 1: everything computed that crosses phases.
      axis_of("keep", {0, 1}, [&](int64_t) { return phases > 1; }),
      axis_of("pipeline", {0, 1}, [&](int64_t) { return phases > 1 && plain_rows && rows >= 2 * phases; }),
      axis_of("stagger", {0, 704}, [&](int64_t) { return phases > 1; }),
      stream_axis(group, domain, machine),
      axis_of("prefetch", {0, 1, 2, 4}, [&](int64_t p) { return p < rows; }),
      axis_of("prefetch_level", {1, 2}),
      axis_of("tasks", {1, 4, 16}, [&](int64_t t) { return t * machine.threads <= rows; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  space.legal = [](const Schedule& s) {
    if (s["accumulators"] > s["unroll"]) return false;
    if (s["prefetch"] == 0 && s["prefetch_level"] != 1) return false;
    return true;
  };
  const int64_t unroll = largest_up_to(space.axes[1], 4);
  const int64_t accumulators = largest_up_to(space.axes[2], 4);
  const int64_t ahead = largest_up_to(space.axes[7], 2);
  const int64_t threads = footprint(group) < 64 << 10 ? 1 : machine.threads;
  const bool large = footprint(group) > cache_share(machine) && space.axes[6].values.size() > 1;
  const int64_t stream = large ? 1 : 0;
  const bool pipelines = space.axes[4].values.size() > 1;
  // As many row buffers as phases, beside the row that is being read.
  const bool fits_l1 = (phases + 1) * row * 4 <= machine.l1_bytes;
  const auto seed = [&](int64_t pipeline, int64_t keep, int64_t prefetch, int64_t level) {
    add_seed(space, {{"unroll", unroll},
                     {"accumulators", accumulators},
                     {"keep", keep},
                     {"pipeline", pipeline},
                     {"stagger", pipeline ? 704 : 0},
                     {"stream", stream},
                     {"prefetch", prefetch},
                     {"prefetch_level", level},
                     {"threads", threads}});
  };
  // Measured on Zen 5: pipelined rows still want their loads fetched ahead (softmax 0.55 -> 1.0 of the copy limit).
  if (pipelines && fits_l1) {
    seed(1, 0, ahead, 1);
    seed(1, 1, ahead, 1);
    seed(1, 0, largest_up_to(space.axes[7], 1), 2);
  }
  seed(0, 0, ahead, fits_l1 ? 1 : 2);
  seed(0, 0, 0, 1);
  seed(0, 1, largest_up_to(space.axes[7], 1), 2);
  return space;
}

}  // namespace wl

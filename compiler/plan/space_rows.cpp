// Row reductions: the row is walked once for each phase, kept in an L1 buffer or read again; one thread owns a range of
// rows.
#include "compiler/plan/parts.h"
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
  if (machine.threads > 1) add_parts(space, domain, machine, rows, 4 * machine.threads);
  add_last(space, group, domain, rows);
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  const int64_t step = atom == domain.vector ? machine.target->lanes : 1;
  space.legal = [shared, step](const Schedule& s) {
    // What crosses a pass is computed again; what is fetched ahead is another row's.
    const bool plain = s["keep"] == 0 && s["pipeline"] == 0 && s["stagger"] == 0 && s["prefetch"] == 0;
    if (!may_join(s)) return false;
    if (const int64_t parts = s.get("parts", 1); parts > 1) {
      if (!plain || s["tasks"] != 1 || s["threads"] == 1 || !shares_out(shared, parts, step)) return false;
    }
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
  // A thread each, and several: as much for every thread where the parts are no multiple of them.
  for (int64_t wanted : {machine.threads, 4 * machine.threads}) {
    const int64_t parts = rows < machine.threads ? parts_for(space, rows, wanted) : 1;
    if (parts == 1) continue;
    const size_t before = space.seeds.size();
    seed(0, 0, 0, 1);
    for (size_t i = before; i < space.seeds.size(); ++i) set_knob(space, space.seeds[i], "parts", parts);
  }
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

// Column reductions: a tile of some vectors is summed along the reduced loops, in registers.
#include "compiler/plan/space_common.h"

namespace wl {

Space space_columns(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t vectors = std::max<int64_t>(1, domain.vector >= 0 ? domain.atoms[domain.vector].extent / lanes : 1);
  const int64_t columns = extent_of(domain, domain.parallel);
  Space space;
  space.axes = {
      axis_of("vector", {lanes}),
      axis_of("tile", {1, 2, 4, 8}, [&](int64_t t) { return t <= vectors; }),
      axis_of("unroll", {1, 2, 4, 8}),
      stream_axis(group, domain, machine),
      axis_of("prefetch", {0, 1, 2, 4}),
      axis_of("prefetch_level", {1, 2}),
      axis_of("tasks", {1, 4, 16}, [&](int64_t t) { return t * machine.threads * lanes <= columns; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  space.legal = [](const Schedule& s) {
    if (s["unroll"] > s["tile"]) return false;  // no more vectors in a tile than that
    return s["prefetch"] != 0 || s["prefetch_level"] == 1;
  };
  const int64_t threads = footprint(group) < 64 << 10 ? 1 : machine.threads;
  for (int64_t tile : {8, 4, 2, 1}) add_seed(space, {{"tile", tile}, {"unroll", tile}, {"threads", threads}});
  return space;
}

}  // namespace wl

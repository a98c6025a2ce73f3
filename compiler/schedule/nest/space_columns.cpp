// Column reductions: a tile of some vectors is summed along the reduced loops, in registers.
#include <algorithm>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/parts.h"
#include "compiler/schedule/nest/walk.h"

namespace wl {

Space space_columns(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t extent = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int64_t columns = extent_of(domain, domain.parallel);
  Space space;
  space.axes = {
      axis_of("vector", {lanes}),
      axis_of("tile", {1, 2, 4, 8}, [&](int64_t t) { return (t - 1) * lanes < extent; }),
      axis_of("unroll", {1, 2, 4, 8}),
      stream_axis(group, domain, machine),
      axis_of("prefetch", {0, 1, 2, 4}),
      axis_of("prefetch_level", {1, 2}),
      axis_of("tasks", {1, 4, 16}, [&](int64_t t) { return t * machine.threads * lanes <= columns; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  const int64_t most = largest_up_to(space.axes[1], 8) * lanes;  // columns of a block
  const int64_t blocks = std::max<int64_t>(1, columns / most);
  if (machine.threads > 1) add_parts(space, domain, machine, blocks, 4 * machine.threads);
  add_last(space, group, domain, columns);
  add_height(space, domain);
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  space.legal = [shared, machine](const Schedule& s) {
    if (!may_join(s) || !fits_registers(s, machine)) return false;
    if (const int64_t parts = s.get("parts", 1); parts > 1) {
      if (s.get("height", 1) > 1) return false;
      if (s["prefetch"] != 0 || s["tasks"] != 1 || s["threads"] == 1 || !shares_out(shared, parts, 1)) return false;
    }
    if (s["unroll"] > s["tile"]) return false;  // no more vectors in a tile than that
    return s["prefetch"] != 0 || s["prefetch_level"] == 1;
  };
  const int64_t threads = footprint(group) < 64 << 10 ? 1 : machine.threads;
  for (int64_t wanted : {machine.threads, 4 * machine.threads}) {
    const int64_t parts = blocks < machine.threads ? parts_for(space, blocks, wanted) : 1;
    if (parts > 1)
      for (int64_t tile : {8, 4, 2, 1})
        add_seed(space, {{"tile", tile}, {"unroll", tile}, {"threads", threads}, {"parts", parts}});
  }
  for (const auto& [height, tile] : {std::pair(8, 2), {4, 4}, {8, 1}, {4, 2}})
    add_seed(space, {{"tile", tile}, {"height", height}, {"threads", threads}});
  for (int64_t tile : {8, 4, 2, 1}) add_seed(space, {{"tile", tile}, {"unroll", tile}, {"threads", threads}});
  return space;
}

}  // namespace wl

// Maps: every output element on its own; the vector atom in tiles, a block owns a range of tiles.
#include "compiler/plan/space_common.h"

namespace wl {

Space space_map(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t all = extent_of(domain, domain.parallel);
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const bool transposes = domain.second >= 0;
  Space space;
  space.axes = {
      axis_of("vector", {lanes}),
      // Elements along the vector atom; short tiles only where another atom is contiguous in memory that is read.
      axis_of("tile", {4096, 1024, 256, 64, 16},
              [&](int64_t t) { return transposes ? t <= 256 : t < row && t >= 1024; }),
      // Transposes: elements along the other atom, and which of the two is walked innermost.
      axis_of("tile_rows", {64, 16, 256}, [&](int64_t) { return transposes; }),
      axis_of("order", {0, 1}, [&](int64_t) { return transposes; }),
      axis_of("unroll", {1, 2, 4, 8}, [&](int64_t u) { return u * lanes <= row && !transposes; }),
      stream_axis(group, domain, machine),
      axis_of("prefetch", {0, 1, 2, 4}, [&](int64_t p) { return p * 1024 < all; }),
      axis_of("prefetch_level", {1, 2}),
      axis_of("tasks", {1, 4, 16}, [&](int64_t t) { return t * machine.threads * 1024 <= all; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  space.legal = [](const Schedule& s) { return s["prefetch"] != 0 || s["prefetch_level"] == 1; };
  const int64_t bytes = footprint(group);
  const int64_t threads = bytes < 64 << 10 ? 1 : machine.threads;
  const int64_t stream = bytes > cache_share(machine) && space.axes[5].values.size() > 1 ? 1 : 0;
  const int64_t unroll = largest_up_to(space.axes[4], 4), ahead = largest_up_to(space.axes[6], 1);
  if (transposes) {
    for (const auto& [tile, rows] : {std::pair<int64_t, int64_t>{64, 16}, {256, 64}, {16, 16}})
      add_seed(space, {{"tile", tile}, {"tile_rows", rows}, {"stream", stream}, {"threads", threads}});
  }
  add_seed(space, {{"unroll", unroll}, {"stream", stream}, {"prefetch", ahead}, {"threads", threads}});
  add_seed(space, {{"unroll", unroll}, {"stream", stream}, {"threads", threads}});
  add_seed(space, {{"unroll", 1}, {"stream", stream}, {"threads", threads}});
  return space;
}

}  // namespace wl

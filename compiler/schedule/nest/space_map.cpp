// Maps: every output element on its own; the vector atom in tiles, a block owns a range of tiles.
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/walk.h"

namespace wl {
namespace {

enum : size_t { kTile = 1, kUnroll = 5, kStream = 6, kPrefetch = 7 };  // places among the axes

}  // namespace

Space space_map(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t all = extent_of(domain, domain.parallel);
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const bool transposes = domain.second >= 0;
  Space space;
  space.axes = {
      axis_of("vector", {lanes}),
      // Elements along the vector atom; short tiles only where another atom is contiguous in memory that is read.
      transposes ? axis_of("tile", {64, 32, 16, 256})
                 : axis_of("tile", {4096, 1024}, [&](int64_t t) { return t < row; }),
      // Transposes: elements along the other atom, which of the two is walked innermost, and whether a tile is computed
      // in scratch before whole rows of it are written; `prefetch` counts such tiles.
      axis_of("tile_rows", {64, 32, 16, 128}, [&](int64_t) { return transposes; }),
      axis_of("order", {0, 1}, [&](int64_t) { return transposes; }),
      axis_of("staged", {0, 1}, [&](int64_t) { return transposes; }),
      axis_of("unroll", {1, 2, 4, 8}, [&](int64_t u) { return u * lanes <= row; }),
      stream_axis(group, domain, machine),
      axis_of("prefetch", {0, 1, 2, 4}, [&](int64_t p) { return p * 1024 < all; }),
      axis_of("prefetch_level", {1, 2}),
      axis_of("tasks", {1, 4, 16}, [&](int64_t t) { return t * machine.threads * 1024 <= all; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  int64_t staying = 0;  // bytes that every turn of the loop around bands reads again
  const AtomId banded = transposes ? -1 : banded_atom(group, domain, machine, &staying);
  if (banded >= 0) add_band(space);
  space.legal = [transposes, lanes, banded, domain](const Schedule& s) {
    if (banded >= 0 && !shares_out_bands(domain, banded, s)) return false;
    if (transposes && s["unroll"] != 1 && (s["staged"] == 0 || s["unroll"] * lanes > s["tile"])) return false;
    return s["prefetch"] != 0 || s["prefetch_level"] == 1;
  };
  const int64_t bytes = footprint(group);
  const int64_t threads = bytes < 64 << 10 ? 1 : machine.threads;
  const bool cached = bytes <= cache_share(machine);
  const int64_t stream = largest_up_to(space.axes[kStream], cached ? 0 : 1);
  const int64_t unroll = largest_up_to(space.axes[kUnroll], 4), ahead = largest_up_to(space.axes[kPrefetch], 1);
  if (transposes) {
    // From memory: along the rows of what is turned, the next tile on its way.
    const auto staged = [&](int64_t tile, int64_t rows) {
      add_seed(space, {{"tile", tile},
                       {"tile_rows", rows},
                       {"order", 1},
                       {"staged", 1},
                       {"stream", stream},
                       {"prefetch", largest_up_to(space.axes[kPrefetch], cached ? 0 : 1)},
                       {"prefetch_level", cached ? 1 : 2},
                       {"threads", threads}});
    };
    const auto turned = [&](int64_t tile, int64_t rows) {
      add_seed(space, {{"tile", tile}, {"tile_rows", rows}, {"stream", stream}, {"threads", threads}});
    };
    if (!cached) staged(32, 16), staged(64, 64);
    turned(64, 16), turned(16, 16);
    if (cached) staged(64, 64);
    return space;
  }
  if (banded >= 0) {
    // As much of what stays as leaves room beside it in the second level.
    const int64_t rows = rows_within(domain, banded, space.axes[kTile].values[0]);
    for (int64_t band : {256, 64, 16, 4, 1}) {
      if (staying / rows * band > machine.l2_bytes / 8 || band >= rows || rows % band != 0) continue;
      add_seed(space, {{"unroll", unroll}, {"stream", stream}, {"threads", threads}, {"band", band}});
      add_seed(space,
               {{"unroll", unroll}, {"stream", stream}, {"prefetch", ahead}, {"threads", threads}, {"band", band}});
      break;
    }
  }
  add_seed(space, {{"unroll", unroll}, {"stream", stream}, {"prefetch", ahead}, {"threads", threads}});
  add_seed(space, {{"unroll", unroll}, {"stream", stream}, {"threads", threads}});
  add_seed(space, {{"unroll", 1}, {"stream", stream}, {"threads", threads}});
  return space;
}

}  // namespace wl

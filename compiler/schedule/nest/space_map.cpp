// The search space of maps, which reduce nothing, on CPUs. The vectorised axis is divided into tiles, and a block owns
// a range of tiles.
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/blocking.h"
#include "compiler/schedule/nest/nest.h"

namespace wl {
namespace {

// Tiles are short where an input is contiguous along another axis than the output, so that the cache lines that a tile
// loads are still cached when the next rows use them.
Axis tile_axis(bool strided, int64_t row) {
  if (strided) return axis(kTileElements, {64, 32, 16, 256});
  return axis(kTileElements, {4096, 1024}, [row](int64_t tile) { return tile < row; });
}

// Adds seeds for maps whose reads are strided, with the tile sizes that transposes are tried with.
void add_strided_seeds(Space& space, bool cached, int64_t stream, int64_t threads) {
  const int64_t ahead = largest_up_to(values_of(space, kPrefetch), cached ? 0 : 1);
  const auto fetched = [&](int64_t tile) {
    add_seed(space, {{kTileElements, tile},
                     {kStreamStores, stream},
                     {kPrefetch, ahead},
                     {kPrefetchLevel, cached || ahead == 0 ? 1 : 2},
                     {kThreads, threads}});
  };
  if (!cached) fetched(32), fetched(64);
  for (const int64_t tile : {64, 16})
    add_seed(space, {{kTileElements, tile}, {kStreamStores, stream}, {kThreads, threads}});
  if (cached) fetched(64);
}

}  // namespace

Space space_map(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t all = extent_of(domain, domain.parallel);
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const bool strided = domain.second >= 0;
  Space space;
  space.kind = "map";
  space.axes = {
      axis(kVector, {lanes}),
      tile_axis(strided, row),
      axis(kUnroll, {1, 2, 4, 8}, [&](int64_t u) { return u * lanes <= row; }),
      stream_axis(group, domain, machine),
      axis(kPrefetch, {0, 1, 2, 4}, [&](int64_t p) { return p * 1024 < all; }),
      axis(kPrefetchLevel, {1, 2}),
      axis(kTasksPerThread, {1, 4, 16}, [&](int64_t t) { return t * machine.threads * 1024 <= all; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  add_listed_axes(space, machine);
  int64_t staying = 0;  // bytes that are read in every iteration of the loop `blocked`, the same ones in all of them
  const AtomId blocked = strided ? -1 : cache_block_atom(group, domain, machine, &staying);
  if (blocked >= 0) add_cache_block_rows(space);
  space.legal = [strided, lanes, blocked, domain](const Schedule& s) {
    if (blocked >= 0 && !divides_cache_blocks(domain, blocked, s)) return false;
    if (strided && s[kUnroll] != 1 && s[kUnroll] * lanes > s[kTileElements]) return false;
    return s[kPrefetch] != 0 || s[kPrefetchLevel] == 1;
  };
  add_cpu_nest_effects(space, group, domain);
  const int64_t bytes = footprint(group);
  const int64_t threads = bytes < 64 << 10 ? 1 : machine.threads;
  const bool cached = bytes <= cache_share(machine);
  const int64_t stream = largest_up_to(values_of(space, kStreamStores), cached ? 0 : 1);
  const int64_t unroll = largest_up_to(values_of(space, kUnroll), 4),
                ahead = largest_up_to(values_of(space, kPrefetch), 1);
  if (strided) {
    add_strided_seeds(space, cached, stream, threads);
    return space;
  }
  const auto seed = [&](int64_t prefetch, int64_t band) {
    Chosen chosen = {{kUnroll, unroll}, {kStreamStores, stream}, {kPrefetch, prefetch}, {kThreads, threads}};
    if (band > 0) chosen.emplace_back(kCacheBlockRows, band);
    add_seed(space, chosen);
  };
  if (blocked >= 0) {
    // Chooses the largest cache block whose share of the `staying` bytes takes at most an eighth of the L2 cache.
    const int64_t rows = rows_within(domain, blocked, values_of(space, kTileElements)[0]);
    for (int64_t band : {256, 64, 16, 4, 1}) {
      if (staying / rows * band > machine.l2_bytes / 8 || band >= rows || rows % band != 0) continue;
      seed(0, band);
      seed(ahead, band);
      break;
    }
  }
  seed(ahead, 0);
  seed(0, 0);
  add_seed(space, {{kUnroll, 1}, {kStreamStores, stream}, {kThreads, threads}});
  return space;
}

}  // namespace wl

// The search space of transposes on CPUs.
#include "compiler/schedule/axes.h"
#include "compiler/schedule/transpose/transpose.h"

namespace wl {

Space space_transpose(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t all = extent_of(domain, domain.parallel);
  const int64_t row = domain.atoms[domain.vector].extent;
  Space space;
  space.kind = "transpose";
  space.axes = {
      axis(kVector, {lanes}),
      axis(kTileColumns, {64, 32, 16, 256}),
      axis(kTileRows, {64, 32, 16, 128}),
      axis(kRowsInnermost, {0, 1}),
      axis(kStaged, {0, 1}),
      axis(kUnroll, {1, 2, 4, 8}, [&](int64_t u) { return u * lanes <= row; }),
      stream_axis(group, domain, machine),
      axis(kPrefetch, {0, 1, 2, 4}, [&](int64_t p) { return p * 1024 < all; }),
      axis(kPrefetchLevel, {1, 2}),
      axis(kTasksPerThread, {1, 4, 16}, [&](int64_t t) { return t * machine.threads * 1024 <= all; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  add_listed_axes(space, machine);
  space.legal = [lanes](const Schedule& s) {
    if (s[kUnroll] != 1 && (s[kStaged] == 0 || s[kUnroll] * lanes > s[kTileColumns])) return false;
    return s[kPrefetch] != 0 || s[kPrefetchLevel] == 1;
  };
  const auto tile = [lanes](int64_t extent) {
    return [=](const Schedule&, int64_t wanted) { return transposed_tile(extent, wanted, lanes); };
  };
  space.add_effect(kTileRows, tile(domain.atoms[domain.second].extent));
  space.add_effect(kTileColumns, tile(row));
  const int64_t bytes = footprint(group);
  const int64_t threads = bytes < 64 << 10 ? 1 : machine.threads;
  const bool cached = bytes <= cache_share(machine);
  const int64_t stream = largest_up_to(values_of(space, kStreamStores), cached ? 0 : 1);
  // In seeds with the choice `staged`, the innermost loop runs along the transposed input's rows. If inputs come from
  // memory, the next tile is prefetched.
  const auto staged = [&](int64_t columns, int64_t rows) {
    add_seed(space, {{kTileColumns, columns},
                     {kTileRows, rows},
                     {kRowsInnermost, 1},
                     {kStaged, 1},
                     {kStreamStores, stream},
                     {kPrefetch, largest_up_to(values_of(space, kPrefetch), cached ? 0 : 1)},
                     {kPrefetchLevel, cached ? 1 : 2},
                     {kThreads, threads}});
  };
  const auto direct = [&](int64_t columns, int64_t rows) {
    add_seed(space, {{kTileColumns, columns}, {kTileRows, rows}, {kStreamStores, stream}, {kThreads, threads}});
  };
  if (!cached) staged(32, 16), staged(64, 64);
  direct(64, 16), direct(16, 16);
  if (cached) staged(64, 64);
  return space;
}

}  // namespace wl

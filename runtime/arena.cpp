#include "runtime/arena.h"

#include <algorithm>
#include <numeric>

namespace wl {

Arena plan_arena(const std::vector<Lifetime>& values) {
  // A value of a page or more gets whole pages and an additional one, so that its address can be staggered within a
  // page.
  constexpr int64_t kPage = 4096;
  auto room = [](int64_t bytes) {
    int64_t unit = bytes < kPage ? kArenaAlignment : kPage;
    return (bytes + unit - 1) / unit * unit + (bytes < kPage ? 0 : kPage);
  };
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a].bytes > values[b].bytes; });

  Arena arena;
  arena.offsets.assign(values.size(), 0);
  std::vector<size_t> placed;  // indices of the values placed so far, in the order of their offsets
  for (size_t value : order) {
    int64_t size = room(values[value].bytes);
    auto aligned = [&](int64_t lowest) { return size < kPage ? lowest : (lowest + kPage - 1) / kPage * kPage; };
    int64_t offset = 0;
    for (size_t other : placed) {
      bool together = values[other].first <= values[value].last && values[value].first <= values[other].last;
      if (!together) continue;
      if (offset + size <= arena.offsets[other]) break;
      offset = std::max(offset, aligned(arena.offsets[other] + room(values[other].bytes)));
    }
    arena.offsets[value] = offset;
    arena.bytes = std::max(arena.bytes, offset + size);
    auto at = std::find_if(placed.begin(), placed.end(), [&](size_t other) { return arena.offsets[other] > offset; });
    placed.insert(at, value);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].bytes >= kPage) arena.offsets[i] += stagger_of(static_cast<int64_t>(i));
  }
  return arena;
}

}  // namespace wl

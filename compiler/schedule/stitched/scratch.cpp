#include "compiler/schedule/stitched/scratch.h"

#include <algorithm>
#include <numeric>

#include "compiler/base/splitmix.h"

namespace wl {
namespace {

// Gives each need (piece of scratch memory), in `order`, the first offset that fits, a multiple of `unit` bytes. Needs
// of different stages may share memory. Returns the bytes that all needs take together.
int64_t place(std::vector<Need>& needs, const std::vector<size_t>& order, int64_t unit) {
  int64_t bytes = 0;
  for (size_t n = 0; n < order.size(); ++n) {
    Need& mine = needs[order[n]];
    mine.offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t k = 0; k < n; ++k) {
        const Need& other = needs[order[k]];
        const bool together = mine.first <= other.last && other.first <= mine.last;
        const bool overlap = mine.offset < other.offset + other.bytes && other.offset < mine.offset + mine.bytes;
        if (!together || !overlap) continue;
        mine.offset = (other.offset + other.bytes + unit - 1) / unit * unit;
        moved = true;
      }
    }
    bytes = std::max(bytes, mine.offset + mine.bytes);
  }
  return bytes;
}

}  // namespace

void keep_through_turns(const Stitched& choice, bool gpu, std::vector<Need>& needs) {
  const Stitched::Turns& turns = choice.turns;
  // stages use operands while those of the next turn are loaded, so no two stages may share scratch
  if (turns.resident)
    for (size_t k = turns.first; k < turns.last; ++k)
      needs[choice.kept.size() + k].first = turns.first, needs[choice.kept.size() + k].last = turns.last - 1;
  const std::pair<size_t, size_t> repeated[] = {{turns.first, turns.last}, {turns.last, turns.last + turns.rest}};
  for (size_t i = 0; i < needs.size(); ++i) {
    Need& need = needs[i];
    const bool counted = i < choice.kept.size() && choice.kept[i].counts_along >= 0;
    for (const auto& [first, last] : repeated) {
      if (first == last || need.last < first || need.first >= last) continue;
      if (gpu && !counted && need.last < last) continue;
      need.first = std::min(need.first, first);
      need.last = std::max(need.last, last - 1);
    }
  }
}

void place(std::vector<Need>& needs, bool gpu, bool in_memory, int64_t most) {
  constexpr int kMostOrders = 500;
  const int64_t unit = in_memory ? 1024 : gpu ? 128 : 4096;
  std::vector<size_t> order(needs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t bytes = place(needs, order, unit);
  if (!gpu) return;
  std::vector<Need> others = needs;
  const auto try_order = [&] {
    const int64_t taken = place(others, order, unit);
    if (taken < bytes) needs = others;
    bytes = std::min(bytes, taken);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return needs[a].bytes > needs[b].bytes; });
  try_order();
  uint64_t state = needs.size();
  for (int tried = 0; tried < kMostOrders && bytes > most; ++tried) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[split_mix(state) % i]);
    try_order();
  }
}

}  // namespace wl

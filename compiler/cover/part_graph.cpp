#include "compiler/cover/part_graph.h"

#include <algorithm>
#include <numeric>

#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr int kMaxLook = 2048;  // largest number of edges that may_merge() follows in one direction

}  // namespace

PartGraph::PartGraph(int count)
    : before_(static_cast<size_t>(count)),
      after_(static_cast<size_t>(count)),
      rank_(static_cast<size_t>(count)),
      seen_(static_cast<size_t>(count), 0) {
  std::iota(rank_.begin(), rank_.end(), 0);
}

void PartGraph::add_edge(int from, int to) {
  WL_CHECK(from < to, from, " -> ", to);
  after_[static_cast<size_t>(from)].insert(to);
  before_[static_cast<size_t>(to)].insert(from);
}

bool PartGraph::find_between(bool forward, int from, int to, std::vector<int>& found) {
  found.clear();
  ++search_;
  const int low = rank_[static_cast<size_t>(from)], high = rank_[static_cast<size_t>(to)];
  int looks = 0;
  std::vector<int> todo = {forward ? from : to};
  while (!todo.empty()) {
    const int part = todo.back();
    todo.pop_back();
    for (int next : forward ? after(part) : before(part)) {
      if (++looks > kMaxLook) return false;
      const auto at = static_cast<size_t>(next);
      if (next == from || next == to || rank_[at] <= low || rank_[at] >= high || seen_[at] == search_) continue;
      seen_[at] = search_;
      found.push_back(next);
      todo.push_back(next);
    }
  }
  return true;
}

bool PartGraph::may_merge(int from, int to) {
  knows_led_ = false;
  knows_leading_ = find_between(/*forward=*/false, from, to, leading_);
  if (knows_leading_) {
    if (std::any_of(leading_.begin(), leading_.end(), [&](int part) { return after(from).contains(part); }))
      return false;
    if (leading_.empty()) return true;
  }
  knows_led_ = find_between(/*forward=*/true, from, to, led_);
  if (!knows_led_) return false;
  if (std::any_of(led_.begin(), led_.end(), [&](int part) { return before(to).contains(part); })) return false;
  return knows_leading_ || led_.empty();
}

void PartGraph::merge(int from, int to) {
  const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  if (knows_leading_ && leading_.empty()) {
    // No part numbered between `from` and `to` leads to `to`, so the merged part can keep the number of `from`.
  } else if (knows_led_ && led_.empty()) {
    rank_[a] = rank_[b];
  } else {
    std::vector<int> free = {rank_[a], rank_[b]};
    for (const std::vector<int>* list : {&leading_, &led_})
      for (int part : *list) free.push_back(rank_[static_cast<size_t>(part)]);
    std::sort(free.begin(), free.end());
    const auto earlier = [this](int x, int y) { return by_rank(x, y); };
    std::sort(leading_.begin(), leading_.end(), earlier);
    std::sort(led_.begin(), led_.end(), earlier);
    size_t next = 0;
    for (int part : leading_) rank_[static_cast<size_t>(part)] = free[next++];
    rank_[a] = free[next];
    next = free.size() - led_.size();
    for (int part : led_) rank_[static_cast<size_t>(part)] = free[next++];
  }
  after_[a].insert(after_[b].begin(), after_[b].end());
  before_[a].insert(before_[b].begin(), before_[b].end());
  for (std::set<int>* list : {&after_[a], &before_[a]}) {
    list->erase(from);
    list->erase(to);
  }
  for (int next : after_[b]) {
    before_[static_cast<size_t>(next)].erase(to);
    if (next != from) before_[static_cast<size_t>(next)].insert(from);
  }
  for (int previous : before_[b]) {
    after_[static_cast<size_t>(previous)].erase(to);
    if (previous != from) after_[static_cast<size_t>(previous)].insert(from);
  }
  after_[b].clear();
  before_[b].clear();
}

}  // namespace wl

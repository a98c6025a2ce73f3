// Sources of candidates (sources.def): candidates that are made of two others (edge merges, unions and siblings), and
// all connected sets of ops in small parts of the graph.
#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "compiler/cover/part_graph.h"
#include "compiler/cover/planned/candidates.h"

namespace wl {
namespace {

// For an edge (a producer and a reader), this many of the best candidates that contain the producer are tried in unions
// with as many that contain the reader. kUnitedOfMany is for graphs of more than kMany ops.
constexpr size_t kUnitedOfEach = 4, kUnitedOfMany = 1;
// If a value has at most kPairedReaders readers, all pairs of them are tried as siblings, otherwise only pairs of
// consecutive readers.
constexpr size_t kPairedReaders = 6;
constexpr size_t kManyReaders = 64;

struct Merger {
  double saving;
  int from, to, from_candidate, to_candidate, both;
  bool operator<(const Merger& other) const {
    return std::tuple(saving, -from, -to) < std::tuple(other.saving, -other.from, -other.to);
  }
};

size_t united(const Candidates& candidates) {
  return candidates.ops() > kMany ? kUnitedOfMany : kUnitedOfEach;
}

}  // namespace

// Merges candidates along edges, best saving first. The candidates that remain at the end are added as an initial
// cover.
void add_merges(Candidates& candidates) {
  const int count = candidates.ops();
  PartGraph graph(count);
  std::vector<int> part(static_cast<size_t>(count));  // of each part: its candidate; -1: merged into another part
  std::iota(part.begin(), part.end(), 0);
  for (int op = 0; op < count; ++op)
    for (int next : candidates.after(op)) graph.add_edge(op, next);
  std::priority_queue<Merger> queue;
  const auto propose = [&](int from, int to) {
    const int both = candidates.consider(Candidates::joined_ops(candidates[part[from]].ops, candidates[part[to]].ops),
                                         GroupOrigin::kMerge);
    if (both < 0) return;
    const double saving = candidates.micros(part[from]) + candidates.micros(part[to]) - candidates.micros(both);
    if (saving > 0) queue.push({saving, from, to, part[from], part[to], both});
  };
  for (int op = 0; op < count; ++op)
    for (int next : graph.after(op)) propose(op, next);
  while (!queue.empty()) {
    const Merger best = queue.top();
    queue.pop();
    if (part[best.from] != best.from_candidate || part[best.to] != best.to_candidate) continue;
    if (!graph.may_merge(best.from, best.to)) continue;
    graph.merge(best.from, best.to);
    part[best.from] = best.both;
    part[best.to] = -1;
    const std::set<int> after = graph.after(best.from), before = graph.before(best.from);
    if (after.size() + before.size() > kManyReaders) continue;
    for (int next : after) propose(best.from, next);
    for (int previous : before) propose(previous, best.from);
  }
  std::vector<int> left;
  for (int candidate : part)
    if (candidate >= 0) left.push_back(candidate);
  candidates.add_start(std::move(left));
}

void add_unions(Candidates& candidates) {
  const size_t most = united(candidates);
  for (int op = 0; op < candidates.ops(); ++op)
    for (int next : candidates.after(op)) {
      const std::vector<int> from = candidates.best_with(op, most), to = candidates.best_with(next, most);
      for (int a : from)
        for (int b : to)
          if (a != b) candidates.consider(candidates.joined(a, b), GroupOrigin::kUnion);
    }
}

void add_siblings(Candidates& candidates) {
  std::vector<std::vector<int>> readers = candidates.input_readers();
  for (int op = 0; op < candidates.ops(); ++op)
    if (candidates.after(op).size() > 1) readers.push_back(candidates.after(op));
  const size_t most = std::max<size_t>(1, united(candidates) / 2);
  for (const std::vector<int>& list : readers) {
    const size_t reach = list.size() > kPairedReaders ? 1 : list.size();
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t j = i + 1; j < list.size() && j <= i + reach; ++j) {
        if (candidates.is_contraction(list[i]) && candidates.is_contraction(list[j])) continue;
        const std::vector<int> first = candidates.best_with(list[i], most),
                               second = candidates.best_with(list[j], most);
        for (int a : first)
          for (int b : second)
            if (a != b) candidates.consider(candidates.joined(a, b), GroupOrigin::kSibling);
      }
  }
}

void add_all_of_small_parts(Candidates& candidates) {
  // No stitched kernels are tried here, since trying them for all sets of ops would take too long.
  candidates.stop_stitching();
  std::vector<int> part(static_cast<size_t>(candidates.ops()));
  std::iota(part.begin(), part.end(), 0);
  const auto root = [&](int op) {
    while (part[op] != op) op = part[op] = part[part[op]];
    return op;
  };
  const int found = candidates.count();
  for (int i = 0; i < found; ++i)
    for (int op : candidates[i].ops) part[root(op)] = root(candidates[i].ops[0]);
  std::vector<Ops> members(part.size());
  for (int op = 0; op < candidates.ops(); ++op) members[root(op)].push_back(op);
  for (const Ops& all : members) {
    if (all.size() < 2 || static_cast<int>(all.size()) > candidates.enumerated()) continue;
    // Of each op, as bits: the ops that read its value, whose value it reads, or that read a value which it reads too.
    std::vector<unsigned> touching(all.size(), 0);
    const auto touch = [&](int a, int b) {
      const auto x = std::find(all.begin(), all.end(), a), y = std::find(all.begin(), all.end(), b);
      if (x == all.end() || y == all.end() || a == b) return;
      touching[x - all.begin()] |= 1u << (y - all.begin());
      touching[y - all.begin()] |= 1u << (x - all.begin());
    };
    for (int op : all) {
      for (int next : candidates.after(op)) touch(op, next);
      for (int source : candidates.before(op))
        for (int sibling : candidates.after(source)) touch(op, sibling);
    }
    for (const std::vector<int>& readers : candidates.input_readers())
      for (int a : readers)
        for (int b : readers) touch(a, b);
    for (unsigned set = 3; set < 1u << all.size(); ++set) {
      if (std::has_single_bit(set)) continue;
      unsigned reached = set & (~set + 1);
      for (unsigned before = 0; before != reached;) {
        before = reached;
        for (size_t i = 0; i < all.size(); ++i)
          if ((reached >> i & 1) != 0) reached |= touching[i] & set;
      }
      if (reached != set) continue;
      Ops ops;
      for (size_t i = 0; i < all.size(); ++i)
        if ((set >> i & 1) != 0) ops.push_back(all[i]);
      candidates.consider(std::move(ops), GroupOrigin::kAll);
    }
  }
}

}  // namespace wl

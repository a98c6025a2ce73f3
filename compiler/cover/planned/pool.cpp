#include "compiler/cover/planned/pool.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/cover/planned/candidates.h"
#include "compiler/domain/group_order.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// A candidate has at most this many variants (columns) that store all its values but one, and at most this many that
// store only one value besides the results of contractions.
constexpr size_t kMostDropped = 4;
// In graphs of more than kMany ops, a candidate gets variants only if it has at most this many ops.
constexpr size_t kDroppedOfMany = 3;

class Columns {
 public:
  explicit Columns(Candidates& candidates) : candidates_(candidates) {}

  // Adds a column that stores all values of the candidate that other kernels need. Then adds variants that store fewer
  // of these values, which other kernels must then recompute; every variant stores the results of contractions.
  void add(const Fusion& candidate) {
    const std::vector<NodeId> anchors = candidates_.anchors(candidate.ops);
    const Ops all = add(candidate, anchors, candidate.ops);
    if (all.size() < 2 || (candidates_.ops() > kMany && candidate.ops.size() > kDroppedOfMany)) return;
    Ops kept, free;
    for (int op : all) (candidates_.is_contraction(op) ? kept : free).push_back(op);
    for (size_t i = 0; i < free.size() && i < kMostDropped; ++i) {
      Ops stored = all;
      std::erase(stored, free[i]);
      add(candidate, anchors, stored);
    }
    if (free.size() < 3) return;
    // Variants that store one value besides the results of contractions.
    for (size_t i = 0; i < free.size() && i < kMostDropped; ++i) {
      Ops stored = kept;
      stored.push_back(free[i]);
      std::sort(stored.begin(), stored.end());
      add(candidate, anchors, stored);
    }
  }

  std::vector<PoolColumn> take() { return std::move(columns_); }
  int first_of(const Ops& ops) const {
    const auto found = natural_.find(ops);
    return found == natural_.end() ? -1 : found->second;
  }

 private:
  // Adds the column that stores those values of `wanted` that other kernels need, and returns what it stores. Adds
  // nothing if the column is not a legal kernel or computes an op that no stored value needs.
  Ops add(const Fusion& candidate, const std::vector<NodeId>& anchors, const Ops& wanted) {
    const CoverValues& values = candidates_.values();
    const Group group = values.group(anchors, candidates_.anchors(wanted));
    PoolColumn column;
    column.ops = candidate.ops;
    column.origin = candidate.origin;
    for (NodeId store : group.stores) column.stores.push_back(index_of(store));
    for (NodeId read : group.reads)
      if (const NodeId anchor = values.anchor_behind(read); anchor >= 0)
        column.reads.push_back(candidates_.index_of(anchor));
    for (Ops* list : {&column.stores, &column.reads}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    for (NodeId anchor : anchors)
      if (!std::binary_search(group.ops.begin(), group.ops.end(), anchor)) return {};
    column.form = candidates_.form_of(group, candidates_.contract_atoms(candidate.ops));
    if (column.form < 0) return {};
    Ops stores = column.stores;
    if (wanted.size() == candidate.ops.size()) natural_.emplace(candidate.ops, static_cast<int>(columns_.size()));
    columns_.push_back(std::move(column));
    return stores;
  }
  int index_of(NodeId store) const { return candidates_.index_of(candidates_.values().anchor_behind(store)); }

  Candidates& candidates_;
  std::vector<PoolColumn> columns_;
  std::map<Ops, int> natural_;
};

void name_forms(ColumnPool& pool) {
  for (const PoolColumn& column : pool.columns) {
    std::string& hash = pool.forms[column.form].hash;
    if (hash.empty())
      hash = graph_hash(extract(pool.values.graph(), in_order(pool.values.graph(), pool.group(column))));
  }
}

constexpr void (*kCandidateSources[])(Candidates&) = {
#define WL_CANDIDATE_SOURCE(origin, name, function) function,
#define WL_COLUMN_SOURCE(origin, name, function)
#include "compiler/cover/planned/sources.def"
#undef WL_COLUMN_SOURCE
#undef WL_CANDIDATE_SOURCE
};
constexpr absl::Status (*kColumnSources[])(ColumnPool&, Candidates&) = {
#define WL_CANDIDATE_SOURCE(origin, name, function)
#define WL_COLUMN_SOURCE(origin, name, function) function,
#include "compiler/cover/planned/sources.def"
#undef WL_COLUMN_SOURCE
#undef WL_CANDIDATE_SOURCE
};

}  // namespace

std::string_view name_of(GroupOrigin origin) {
  constexpr std::string_view kNames[] = {
      "single",
#define WL_CANDIDATE_SOURCE(origin, name, function) name,
#define WL_COLUMN_SOURCE(origin, name, function) name,
#include "compiler/cover/planned/sources.def"
#undef WL_COLUMN_SOURCE
#undef WL_CANDIDATE_SOURCE
  };
  return kNames[static_cast<int>(origin)];
}

// Adds the groups of the greedy cover, and stops at a group that is not a candidate. If all groups are candidates, the
// greedy cover becomes an initial cover.
void add_greedy_groups(Candidates& candidates) {
  const absl::StatusOr<Cover> cover =
      cover_greedy(candidates.values().graph(), candidates.machine(), {.work = candidates.work()});
  if (!cover.ok()) return;
  std::vector<int> found;
  for (const Group& group : cover->groups) {
    Ops ops;
    for (NodeId node : group.ops)
      if (candidates.index_of(node) >= 0) ops.push_back(candidates.index_of(node));
    if (ops.empty()) continue;  // a group without ops only copies an input or constant
    found.push_back(candidates.consider(ops, GroupOrigin::kGreedy));
    if (found.back() < 0) return;
  }
  candidates.add_start(std::move(found));
}

Group ColumnPool::group(const PoolColumn& column) const {
  const auto nodes = [this](const std::vector<int>& ops) {
    std::vector<NodeId> out;
    out.reserve(ops.size());
    for (int op : ops) out.push_back(values.anchors()[op]);
    return out;
  };
  return values.group(nodes(column.ops), nodes(column.stores));
}

absl::StatusOr<ColumnPool> candidate_pool(const Graph& graph, const Machine& machine, int enumerated, Work* work) {
  WL_ASSIGN_OR_RETURN(CoverValues values, CoverValues::make(graph, machine, nullptr, work));
  ColumnPool pool{.values = std::move(values), .columns = {}, .forms = {}, .starts = {}};
  pool.memory_bytes_per_ns = rates_of(machine).memory_bytes_per_ns;
  Candidates candidates(pool.values, machine, enumerated, work);
  WL_RETURN_IF_ERROR(ended(work));
  for (const auto add : kCandidateSources) add(candidates);
  Columns columns(candidates);
  for (int i = 0; i < candidates.count() && go_on(work, 1); ++i) columns.add(candidates[i]);
  WL_RETURN_IF_ERROR(ended(work));
  for (const std::vector<int>& start : candidates.starts()) {
    std::vector<int> chosen;
    for (int candidate : start) chosen.push_back(columns.first_of(candidates[candidate].ops));
    const bool whole = std::find(chosen.begin(), chosen.end(), -1) == chosen.end();
    if (!chosen.empty() && whole) pool.starts.push_back(std::move(chosen));
  }
  std::vector<int>& alone = pool.starts.emplace_back();
  for (int op = 0; op < candidates.ops(); ++op) alone.push_back(columns.first_of({op}));
  pool.columns = columns.take();
  pool.considered = candidates.considered();
  pool.forms = candidates.forms();
  if (pool.columns.empty()) return pool;
  for (const auto add : kColumnSources) WL_RETURN_IF_ERROR(add(pool, candidates));
  WL_RETURN_IF_ERROR(ended(work));
  pool.forms = candidates.forms();
  name_forms(pool);
  return pool;
}

}  // namespace wl

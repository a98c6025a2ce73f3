// Packs: independent kernels of a cover that become one launch, side by side. Packs are made from the best cover
// without packs. On GPUs and for graphs of at most kMany ops, they are also made from the pool's initial covers, since
// the launches that a pack saves may outweigh slower kernels. All kernels of a pack have the same level (the length of
// the longest path of kernels that leads to the kernel, or from it), and each kernel leaves part of the machine idle or
// has a launch that is a large share of its time. Kernels that read the same value are tried first.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/cover/packing.h"
#include "compiler/cover/planned/candidates.h"
#include "compiler/cover/planned/planned.h"
#include "compiler/cover/planned/pool.h"

namespace wl {
namespace {

constexpr double kFilled = 0.9;      // a kernel that keeps less than this share of the machine busy is worth packing
constexpr double kNotable = 0.05;    // a kernel whose launch is more than this share of its time is worth packing
constexpr size_t kMostTogether = 8;  // largest number of kernels in one pack
// Of at most this many kernels of one level, all combinations are tried as packs.
constexpr size_t kMostCombined = 4;

class Packs {
 public:
  Packs(ColumnPool& pool, Candidates& candidates)
      : pool_(pool), candidates_(candidates), rates_(rates_of(candidates.machine())) {}

  // Makes packs of kernels of the cover that have the same level. Levels are counted once from the kernels that run
  // first and once from those that run last, since a kernel that can run early may also run late.
  void add(const std::vector<int>& cover) {
    std::map<int, int> stored_by;  // of each op: the column that stores its value
    for (int g : cover)
      for (int value : pool_.columns[g].stores) stored_by.emplace(value, g);
    Edges before, after;
    for (int g : cover)
      for (int value : pool_.columns[g].reads)
        if (const auto from = stored_by.find(value); from != stored_by.end()) {
          before[g].push_back(from->second);
          after[from->second].push_back(g);
        }
    add(cover, before);
    add(cover, after);
  }

 private:
  using Edges = std::map<int, std::vector<int>>;  // of each column: the columns whose values it reads, or its readers

  void add(const std::vector<int>& cover, Edges& edges) {
    std::map<int, int> level_of;
    const auto level = [&](const auto& self, int g) -> int {
      if (const auto known = level_of.find(g); known != level_of.end()) return known->second;
      int most = 0;
      for (int other : edges[g]) most = std::max(most, self(self, other) + 1);
      return level_of[g] = most;
    };
    std::map<int, std::vector<int>> levels;
    for (int g : cover)
      if (wants_company(pool_.forms[pool_.columns[g].form].cost)) levels[level(level, g)].push_back(g);
    for (const auto& [_, columns] : levels) {
      std::map<NodeId, std::vector<int>> readers;
      for (int g : columns)
        for (NodeId read : pool_.group(pool_.columns[g]).reads) readers[read].push_back(g);
      for (const auto& [read, list] : readers) combine(list);
      combine(columns);
    }
  }

  bool wants_company(const Cost& cost) const {
    const double work = cost.micros - rates_.launch_us;
    return cost.busy < kFilled * work || rates_.launch_us > kNotable * cost.micros;
  }

  void combine(const std::vector<int>& columns) {
    if (columns.size() <= kMostCombined) {
      for (unsigned set = 3; set < 1u << columns.size(); ++set) {
        std::vector<int> some;
        for (size_t i = 0; i < columns.size(); ++i)
          if ((set >> i & 1) != 0) some.push_back(columns[i]);
        if (some.size() > 1) pack(some);
      }
      return;
    }
    for (size_t begin = 0; begin < columns.size(); begin += kMostTogether) {
      const size_t end = std::min(columns.size(), begin + kMostTogether);
      if (end - begin > 1)
        pack(
            {columns.begin() + static_cast<std::ptrdiff_t>(begin), columns.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }

  void pack(const std::vector<int>& columns) {
    PoolColumn both;
    both.origin = GroupOrigin::kPack;
    size_t ops = 0;
    for (int g : columns) {
      const PoolColumn& column = pool_.columns[g];
      ops += column.ops.size();
      both.ops = Candidates::joined_ops(both.ops, column.ops);
      both.stores = Candidates::joined_ops(both.stores, column.stores);
      both.reads = Candidates::joined_ops(both.reads, column.reads);
    }
    // Kernels that compute the same op, or that are connected by a path through other ops, cannot be packed.
    if (both.ops.size() != ops || candidates_.closed(both.ops).size() != ops) return;
    if (!known_.insert(both.ops).second) return;
    both.form = candidates_.form_of(pool_.group(both), candidates_.contract_atoms(both.ops));
    if (both.form >= 0) pool_.columns.push_back(std::move(both));
  }

  ColumnPool& pool_;
  Candidates& candidates_;
  const Rates rates_;
  std::set<Ops> known_;
};

}  // namespace

// Adds columns that pack some kernels of the best cover, or of an initial cover, into one launch.
absl::Status add_packs(ColumnPool& pool, Candidates& candidates) {
  WL_ASSIGN_OR_RETURN(PlannedCover best, solve_cover(pool, form_times(pool, {}), {}, candidates.work()));
  std::erase(best.columns, -1);
  candidates.start_packing();
  Packs packs(pool, candidates);
  packs.add(best.columns);
  if (candidates.machine().target->is_gpu() && candidates.ops() <= kMany)
    for (const std::vector<int>& start : pool.starts) packs.add(start);
  return absl::OkStatus();
}

}  // namespace wl

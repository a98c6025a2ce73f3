// Packs: kernels of a cover that wait for none of each other, side by side in one launch. Candidates are kernels of one
// level that leave part of the machine idle, or whose launch is a notable part of what they take: first those that
// read the same value.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/search/candidates.h"
#include "compiler/search/pool.h"

namespace wl {
namespace {

constexpr double kFilled = 0.9;      // of the machine, by a kernel that needs no company
constexpr double kNotable = 0.05;    // of a kernel's time, by its launch
constexpr size_t kMostTogether = 8;  // kernels of a pack
constexpr size_t kMostCombined = 4;  // kernels all of whose combinations are tried

class Packs {
 public:
  Packs(ColumnPool& pool, Candidates& candidates)
      : pool_(pool), candidates_(candidates), rates_(rates_of(candidates.machine())) {}

  void add(const std::vector<int>& cover) {
    std::map<int, int> level_of;  // of the value that a column stores, by op
    std::map<int, std::vector<int>> levels;
    for (int g : cover) {
      const PoolColumn& column = pool_.columns[g];
      int level = 0;
      for (int value : column.reads)
        if (const auto known = level_of.find(value); known != level_of.end())
          level = std::max(level, known->second + 1);
      for (int value : column.stores) level_of.emplace(value, level);
      if (wants_company(pool_.forms[column.form].cost)) levels[level].push_back(g);
    }
    for (const auto& [level, columns] : levels) {
      std::map<NodeId, std::vector<int>> readers;
      for (int g : columns)
        for (NodeId read : pool_.group(pool_.columns[g]).reads) readers[read].push_back(g);
      for (const auto& [read, list] : readers) combine(list);
      combine(columns);
    }
  }

 private:
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
    // What several compute is no part of its own, and what lies between them would have to run inside.
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

void add_packs(ColumnPool& pool, const std::vector<int>& cover, Candidates& candidates) {
  candidates.start_packing();
  Packs(pool, candidates).add(cover);
}

}  // namespace wl

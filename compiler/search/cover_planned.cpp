#include "compiler/search/cover_planned.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "compiler/ir/text.h"
#include "compiler/search/cover_regions.h"

namespace wl {
namespace {

constexpr double kHope = 0.85;  // of what an unmeasured kernel is expected to take
constexpr double kPrior = 2;    // measurements that the model's own word is worth
constexpr size_t kClasses = 5;  // of LoopClass

// The values that nobody stored before, in running order: who comes second need not write it again.
std::vector<std::vector<int>> stores_of(const ColumnPool& pool, const std::vector<int>& chosen) {
  std::set<int> stored;
  std::vector<std::vector<int>> out;
  for (int g : chosen) {
    std::vector<int>& mine = out.emplace_back();
    for (int value : pool.columns[g].stores)
      if (stored.insert(value).second) mine.push_back(value);
  }
  return out;
}

}  // namespace

CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros) {
  CoverProgram program;
  const std::vector<NodeId>& anchors = pool.values.anchors();
  program.ops = static_cast<int>(anchors.size());
  for (NodeId anchor : anchors) {
    program.once.push_back(pool.values.graph().nodes[anchor].op == Op::contract);
    program.wanted.push_back(pool.values.is_output(anchor));
  }
  for (const PoolColumn& column : pool.columns)
    program.columns.push_back({column.ops, column.stores, column.reads, micros[column.form]});
  return program;
}

std::vector<double> form_times(const ColumnPool& pool, const MeasuredTimes& times) {
  std::vector<double> micros;
  for (const Form& form : pool.forms) micros.push_back(form.cost.micros);
  if (times.empty()) return micros;
  std::vector<double> measured(pool.forms.size(), 0);
  std::vector<char> asked(pool.forms.size(), 0);
  for (const PoolColumn& column : pool.columns) {
    if (asked[column.form] != 0) continue;
    asked[column.form] = 1;
    const auto known =
        times.find(graph_hash(extract(pool.values.graph(), in_order(pool.values.graph(), pool.group(column)))));
    if (known != times.end()) measured[column.form] = known->second;
  }
  std::array<double, kClasses> sum{}, count{};
  for (size_t f = 0; f < measured.size(); ++f) {
    if (measured[f] <= 0) continue;
    const auto cls = static_cast<size_t>(pool.forms[f].cls);
    sum[cls] += std::log(measured[f] / micros[f]);
    ++count[cls];
  }
  for (size_t f = 0; f < measured.size(); ++f) {
    const auto cls = static_cast<size_t>(pool.forms[f].cls);
    micros[f] = measured[f] > 0 ? measured[f] : micros[f] * std::exp(sum[cls] / (count[cls] + kPrior)) * kHope;
  }
  return micros;
}

PlannedCover solve_cover(const ColumnPool& pool, const std::vector<double>& micros) {
  PlannedCover planned;
  planned.micros = micros;
  for (const Group& copy : pool.values.copies()) {
    planned.cover.groups.push_back(copy);
    planned.columns.push_back(-1);
  }
  if (pool.columns.empty()) return planned;
  const CoverProgram program = program_of(pool, micros);
  const RegionsAnswer answer = solve_regions(program, pool.starts);
  planned.total = answer.micros;
  planned.bound = answer.bound;
  planned.regions = answer.regions;
  planned.distinct_regions = answer.distinct;
  planned.rows = answer.rows;
  planned.cuts = answer.cuts;
  const std::vector<std::vector<int>> stores = stores_of(pool, answer.chosen);
  for (size_t i = 0; i < answer.chosen.size(); ++i) {
    if (stores[i].empty()) continue;
    PoolColumn column = pool.columns[answer.chosen[i]];
    column.stores = stores[i];
    planned.cover.groups.push_back(in_order(pool.values.graph(), pool.group(column)));
    planned.columns.push_back(answer.chosen[i]);
  }
  return planned;
}

absl::StatusOr<Cover> cover_planned(const Graph& graph, const Machine& machine, const MeasuredTimes& times) {
  WL_ASSIGN_OR_RETURN(const ColumnPool pool, candidate_pool(graph, machine));
  return solve_cover(pool, form_times(pool, times)).cover;
}

}  // namespace wl

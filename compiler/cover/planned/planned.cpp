#include "compiler/cover/planned/planned.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/cover/planned/regions.h"

namespace wl {
namespace {

// In the mean of the model's errors for a class of kernels, an error of 0 has the weight of this many measurements.
constexpr double kPrior = 2;
constexpr double kPriorSpread = 0.3;  // assumed standard deviation of log(measured / modelled time)
// The price that is assumed for an unmeasured kernel is at most this many standard deviations below its likely time.
constexpr double kPlausible = 2.5;
constexpr size_t kClasses = 6;  // number of values of LoopClass
constexpr double kNever = std::numeric_limits<double>::infinity();
// A kernel that is timed alone finds more of its values in cache than it does within a program. So the price of a
// kernel includes this share of the time that its memory traffic takes at full bandwidth. If the times of covers differ
// by less than the noise, the cover with less traffic is then chosen.
constexpr double kUnseenTraffic = 0.1;

// The model's error for the measured kernels of one class: mean and spread of log(measured / modelled time).
class ModelError {
 public:
  void add(double log_ratio) {
    sum_ += log_ratio;
    squares_ += log_ratio * log_ratio;
    ++count_;
  }
  double mean() const { return sum_ / (count_ + kPrior); }
  double spread() const {
    const double squares = (squares_ + kPrior * kPriorSpread * kPriorSpread) / (count_ + kPrior);
    return std::sqrt(std::max(0.0, squares - mean() * mean()));
  }

 private:
  double sum_ = 0, squares_ = 0, count_ = 0;
};

// Returns, for each chosen column in running order, those of its values that no earlier column stores, so that no
// value is written twice.
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

CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros, std::vector<int>* columns) {
  CoverProgram program;
  const std::vector<NodeId>& anchors = pool.values.anchors();
  program.ops = static_cast<int>(anchors.size());
  for (NodeId anchor : anchors) {
    program.once.push_back(pool.values.graph().nodes[anchor].op == Op::contract);
    program.wanted.push_back(pool.values.is_output(anchor));
  }
  for (size_t g = 0; g < pool.columns.size(); ++g) {
    const PoolColumn& column = pool.columns[g];
    if (std::isinf(micros[column.form])) continue;
    program.columns.push_back({column.ops, column.stores, column.reads, micros[column.form]});
    if (columns != nullptr) columns->push_back(static_cast<int>(g));
  }
  return program;
}

std::vector<double> form_times(const ColumnPool& pool, const CoverPrices& prices) {
  std::vector<double> micros;
  for (const Form& form : pool.forms) micros.push_back(form.cost.micros);
  if (prices.measured.empty() && prices.otherwise == Unmeasured::kLikely) return micros;
  std::vector<double> measured(pool.forms.size(), 0);
  for (size_t f = 0; f < pool.forms.size(); ++f) {
    const auto known = prices.measured.find(pool.forms[f].hash);
    if (known != prices.measured.end()) measured[f] = known->second;
  }
  std::array<ModelError, kClasses> errors;
  for (size_t f = 0; f < measured.size(); ++f)
    if (measured[f] > 0) errors[static_cast<size_t>(pool.forms[f].cls)].add(std::log(measured[f] / micros[f]));
  for (size_t f = 0; f < measured.size(); ++f) {
    const ModelError& error = errors[static_cast<size_t>(pool.forms[f].cls)];
    if (measured[f] > 0) {
      micros[f] = measured[f];
    } else if (prices.otherwise == Unmeasured::kLikely) {
      micros[f] *= std::exp(error.mean()) * std::max(prices.hope, std::exp(-kPlausible * error.spread()));
    } else {
      micros[f] = prices.otherwise == Unmeasured::kBound ? pool.forms[f].cost.bound : kNever;
    }
    micros[f] += kUnseenTraffic * static_cast<double>(pool.forms[f].cost.bytes) / pool.memory_bytes_per_ns / 1000;
  }
  return micros;
}

absl::StatusOr<PlannedCover> solve_cover(const ColumnPool& pool, const std::vector<double>& micros,
                                         const std::vector<std::vector<int>>& starts, Work* work) {
  PlannedCover planned;
  planned.micros = micros;
  for (const Group& copy : pool.values.copies()) {
    planned.cover.groups.push_back(copy);
    planned.columns.push_back(-1);
  }
  if (pool.columns.empty()) return planned;
  std::vector<int> columns, place(pool.columns.size(), -1);
  const CoverProgram program = program_of(pool, micros, &columns);
  for (size_t i = 0; i < columns.size(); ++i) place[columns[i]] = static_cast<int>(i);
  std::vector<std::vector<int>> usable;
  for (const auto* list : {&pool.starts, &starts})
    for (const std::vector<int>& start : *list) {
      std::vector<int> placed;
      for (int g : start)
        if (g >= 0) placed.push_back(place[g]);
      if (std::find(placed.begin(), placed.end(), -1) == placed.end()) usable.push_back(std::move(placed));
    }
  if (usable.empty()) return absl::NotFoundError("no known cover has a measured kernel for every group");
  const RegionsAnswer answer = solve_regions(program, usable, work);
  WL_RETURN_IF_ERROR(ended(work));
  planned.total = answer.micros;
  planned.bound = answer.bound;
  planned.regions = answer.regions;
  planned.distinct_regions = answer.distinct;
  planned.rows = answer.rows;
  planned.cuts = answer.cuts;
  std::vector<int> chosen;
  for (int g : answer.chosen) chosen.push_back(columns[g]);
  const std::vector<std::vector<int>> stores = stores_of(pool, chosen);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (stores[i].empty()) continue;
    PoolColumn column = pool.columns[chosen[i]];
    column.stores = stores[i];
    planned.cover.groups.push_back(in_order(pool.values.graph(), pool.group(column)));
    planned.columns.push_back(chosen[i]);
  }
  return planned;
}

absl::StatusOr<Cover> cover_planned(const ColumnPool& pool, const CoverPrices& prices, Work* work) {
  WL_ASSIGN_OR_RETURN(PlannedCover planned, solve_cover(pool, form_times(pool, prices), {}, work));
  return std::move(planned.cover);
}

}  // namespace wl

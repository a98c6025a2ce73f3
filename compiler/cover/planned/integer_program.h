// An integer program as rows over columns, solved by CBC (https://github.com/coin-or/Cbc). Nothing here knows what it
// stands for, and nothing outside the .cpp sees the solver.
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

class OsiClpSolverInterface;

namespace wl {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct IntegerAnswer {
  bool any = false;         // a solution was found
  std::vector<int> chosen;  // choices that are 1, ascending
  double bound = 0;         // no solution costs less
};

struct Relaxed {
  double bound = 0;           // no solution costs less
  std::vector<double> price;  // of each row: what a unit of its limit is worth
};

class IntegerProgram {
 public:
  int add_choice(double cost);  // 0 or 1; choices come before shares
  int add_share();              // between 0 and 1, of no cost
  void add_row(const std::vector<std::pair<int, double>>& terms, double low, double high);
  int rows() const { return static_cast<int>(low_.size()); }

  // Looks for what costs less than `known`, the cost of some solution. Deterministic: one thread, a limit of nodes
  // rather than of time. A failure of the solver is an answer without solution and the bound 0.
  IntegerAnswer solve(double known, int max_nodes) const;
  // Without whole numbers. nullopt: the solver failed.
  std::optional<Relaxed> relaxed() const;

 private:
  void load(OsiClpSolverInterface& lp) const;

  std::vector<double> cost_;  // of columns
  int choices_ = 0;
  std::vector<int> row_start_ = {0}, column_;
  std::vector<double> value_, low_, high_;
};

}  // namespace wl

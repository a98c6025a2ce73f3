// An integer program of rows (constraints) over columns (variables), solved by CBC (https://github.com/coin-or/Cbc).
// This class knows nothing of covers, and only integer_program.cpp includes the solver's headers.
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/base/work.h"

class OsiClpSolverInterface;

namespace wl {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct IntegerAnswer {
  bool any = false;         // whether a solution was found
  std::vector<int> chosen;  // the choices (variables of add_choice()) that are 1, ascending
  double bound = 0;         // a lower bound of the cost of every solution
};

struct Relaxed {
  double bound = 0;           // a lower bound of the cost of every solution
  std::vector<double> price;  // dual value of each row
};

class IntegerProgram {
 public:
  // Adds a variable that is 0 or 1. All calls of add_choice() must come before the first call of add_share().
  int add_choice(double cost);
  int add_share();  // adds a variable between 0 and 1, without cost
  void add_row(const std::vector<std::pair<int, double>>& terms, double low, double high);
  int rows() const { return static_cast<int>(low_.size()); }

  // Searches for a solution that costs less than `known`, the cost of a known solution. The result is deterministic:
  // one thread searches, and its limits are numbers of nodes and of simplex iterations, not a time. If the solver
  // fails, or if `work` (may be null) ends, the answer has no solution and the bound 0.
  IntegerAnswer solve(double known, int max_nodes, Work* work) const;
  // Solves the linear relaxation. nullopt: the solver failed, or `work` ended.
  std::optional<Relaxed> relaxed(Work* work) const;

 private:
  void load(OsiClpSolverInterface& lp, Work* work) const;

  std::vector<double> cost_;  // cost of each column (variable)
  int choices_ = 0;
  std::vector<int> row_start_ = {0}, column_;
  std::vector<double> value_, low_, high_;
};

}  // namespace wl

// The cheapest cover as an integer program over columns. A column is a candidate kernel: it computes ops, stores some
// of their values and reads values of other ops. Ops are numbers, and each has one value. x_g = 1: column g is chosen;
// y_v = 1: value v is needed.
//
//   min  sum micros_g x_g
//   cover  sum_{g computes o} x_g >= 1        for every op o; = 1 if `once` holds for o
//   store  sum_{g stores v} x_g >= y_v        for every value v; y_v = 1 if `wanted` holds for v
//   read   y_v >= x_g                         for every v that g reads
//   loop   sum_{g in C} x_g <= |C| - 1 + sum_{g in E} x_g      for a cycle C of columns that would wait for each other
//
// For integers *cover* follows from the other rows, but it makes the solver fast. A *loop* row is added when a solution
// violates it: W are the values passed along the cycle C, and E are the columns that store one of W and read none.
#pragma once

#include <vector>

#include "compiler/base/work.h"

namespace wl {

struct ProgramColumn {
  // Ascending numbers of the ops that the column computes, of the values that it stores, and of the values that it
  // reads.
  std::vector<int> ops, stores, reads;
  double micros = 0;
};

struct CoverProgram {
  int ops = 0;
  // Of each op: whether exactly one column must compute it, and whether its value must be stored.
  std::vector<char> once, wanted;
  std::vector<ProgramColumn> columns;
};

struct ProgramAnswer {
  std::vector<int> chosen;  // numbers of the chosen columns, each after those whose values it reads
  double micros = 0;
  double bound = 0;  // lower bound in us of the time of every cover that the columns can form
  int rows = 0, cuts = 0;
  bool proven() const { return micros <= bound * (1 + 1e-6) + 1e-6; }
};

double micros_of(const CoverProgram& program, const std::vector<int>& chosen);

// Returns the columns in an order in which they can run. Values that no chosen column stores count as present from the
// start. If some columns wait for each other's values, the result is empty, and `waiting`, unless null, receives these
// columns.
std::vector<int> runnable_order(const CoverProgram& program, const std::vector<int>& chosen,
                                std::vector<int>* waiting = nullptr);

// Whether the chosen columns can run in some order, compute every op (exactly once where `once` holds), and store every
// value that is wanted or read.
bool is_cover(const CoverProgram& program, const std::vector<int>& chosen);

// Returns the best cover found within max_nodes nodes of the search tree; it is never worse than `start`, which must be
// a cover. The search uses one thread and no clock, so that the same program gives the same answer. If `work` ends
// first, the answer is the best cover found until then.
ProgramAnswer solve_program(const CoverProgram& program, const std::vector<int>& start, int max_nodes,
                            Work* work = nullptr);

// For programs that are too large to solve: returns `start` with the bound of the linear relaxation. `worth` receives
// the columns of `start` and, for each op, the `kept` columns of least reduced cost that compute the op.
ProgramAnswer price_program(const CoverProgram& program, const std::vector<int>& start, size_t kept,
                            std::vector<int>& worth, Work* work = nullptr);

}  // namespace wl

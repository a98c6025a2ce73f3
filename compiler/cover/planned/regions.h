// Divides the integer program of a cover into regions that can be solved separately. Used in this folder only.
#pragma once

#include <vector>

#include "compiler/cover/planned/program.h"

namespace wl {

struct RegionsAnswer {
  std::vector<int> chosen;  // numbers of the chosen columns, in an order in which they can run
  double micros = 0, bound = 0;
  int regions = 0, distinct = 0, rows = 0, cuts = 0;
};

// Solves the whole program, region by region. Ops that no column connects lie in different regions. This loses nothing,
// since every cover stores the values that pass between regions. Equal regions are solved once; regions of more than
// kWholeRegion ops are solved in segments. `starts`: initial covers, as lists of columns. The first must be a cover;
// each region starts from the cheapest list that covers it. If `work` ends first, the answer is a cover that may be far
// from the cheapest.
RegionsAnswer solve_regions(const CoverProgram& program, const std::vector<std::vector<int>>& starts,
                            Work* work = nullptr);

// Improves a cover of a large program: divides its columns, in running order, into segments, and solves each segment
// again with the `usable` columns.
std::vector<int> improve_by_segments(const CoverProgram& program, const std::vector<int>& usable,
                                     std::vector<int> chosen, Work* work = nullptr);

}  // namespace wl

// Inside search/: a cover's program cut into parts that can be solved alone.
#pragma once

#include <vector>

#include "compiler/cover/planned/program.h"

namespace wl {

struct RegionsAnswer {
  std::vector<int> chosen;  // in an order in which they can run
  double micros = 0, bound = 0;
  int regions = 0, distinct = 0, rows = 0, cuts = 0;
};

// Solves the whole program: ops that no column joins are regions of their own (exact: what crosses between them is
// stored whatever is chosen), equal regions are solved once, and those of more than kWholeRegion ops in segments.
// `starts`: covers, by column; the first must be one, of others each region takes what is cheaper.
RegionsAnswer solve_regions(const CoverProgram& program, const std::vector<std::vector<int>>& starts);

// A cover of a large program improved segment by segment of its own order, by these columns.
std::vector<int> improve_by_segments(const CoverProgram& program, const std::vector<int>& usable,
                                     std::vector<int> chosen);

}  // namespace wl

// The planned cover: candidates and an integer program that chooses among them, with measured times in place of
// modelled ones where there are any (docs/decisions/0014-planned-covers.md). Pure: the same graph, machine and times
// give the same cover, so that a restarted coordinator finds the same cover from the stored trials.
#pragma once

#include <string>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/cover/planned/pool.h"
#include "compiler/cover/planned/prices.h"
#include "compiler/cover/planned/program.h"

namespace wl {

struct PlannedCover {
  Cover cover;
  std::vector<int> columns;     // by group of the cover: its column in the pool; -1: a copy of an input to an output
  std::vector<double> micros;   // by form: the price that was assumed
  double total = 0, bound = 0;  // of the cover, and of the best cover over the pool at least; by the assumed prices
  int regions = 0, distinct_regions = 0, rows = 0, cuts = 0;
  bool proven() const { return total <= bound * (1 + 1e-6) + 1e-6; }
};

// Prices of the pool's forms in us; a form with an infinite price is not chosen. Without measurements: the model's.
std::vector<double> form_times(const ColumnPool& pool, const CoverPrices& prices);

// The program that solve_cover() solves; `columns`: by column of the program, its number in the pool.
CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros, std::vector<int>* columns = nullptr);

// `starts`: initial covers besides the pool's own, as columns. NotFound: every initial cover has a column with an
// infinite price. `work`: see compiler/cover/cover.h.
absl::StatusOr<PlannedCover> solve_cover(const ColumnPool& pool, const std::vector<double>& micros,
                                         const std::vector<std::vector<int>>& starts = {}, Work* work = nullptr);

// The cheapest cover over the pool of the graph. NotFound: as solve_cover().
absl::StatusOr<Cover> cover_planned(const ColumnPool& pool, const CoverPrices& prices = {}, Work* work = nullptr);

}  // namespace wl

// The planned cover: an integer program chooses it from a pool of candidates. Kernels that were measured have their
// measured times, all others modelled ones (docs/design/covers.md#integer-program). The result depends only on the
// graph, the machine and the times, so that a restarted coordinator finds the same cover again from the stored trials.
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
  std::vector<int> columns;    // of each group of the cover: its column in the pool; -1: it only copies to an output
  std::vector<double> micros;  // of each form (kernel) of the pool: the assumed price in us
  // In us: the price of the cover, and a lower bound on the prices of all covers that the pool's columns can form.
  double total = 0, bound = 0;
  int regions = 0, distinct_regions = 0, rows = 0, cuts = 0;
  bool proven() const { return total <= bound * (1 + 1e-6) + 1e-6; }
};

// Returns the prices of the pool's forms (kernels that columns share, pool.h) in us; forms with an infinite price are
// not chosen. If nothing was measured, the prices with Unmeasured::kLikely are the modelled times.
std::vector<double> form_times(const ColumnPool& pool, const CoverPrices& prices);

// Returns the integer program that solve_cover() solves. `columns`, unless null, receives the number in the pool of
// each column of the program.
CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros, std::vector<int>* columns = nullptr);

// Finds the cheapest cover that the pool's columns can form. `micros`: the price of each form in us. `starts`: initial
// covers besides the pool's own, as lists of columns. NotFound: every initial cover has a column with an infinite
// price. `work`: see compiler/cover/cover.h.
absl::StatusOr<PlannedCover> solve_cover(const ColumnPool& pool, const std::vector<double>& micros,
                                         const std::vector<std::vector<int>>& starts = {}, Work* work = nullptr);

// Returns the cheapest cover that the pool's columns can form, with prices from form_times(). NotFound as in
// solve_cover().
absl::StatusOr<Cover> cover_planned(const ColumnPool& pool, const CoverPrices& prices = {}, Work* work = nullptr);

}  // namespace wl

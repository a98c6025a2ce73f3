// The planned cover: an integer program chooses it from a pool of candidates, with measured times in place of modelled
// ones where there are any (docs/design/covers.md#integer-program). It is a pure function: the same graph, machine and
// times give the same cover, so that a restarted coordinator finds it again from the stored trials.
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
  std::vector<double> micros;   // us, by form of the pool: the price that was assumed
  double total = 0, bound = 0;  // us, by the assumed prices: of the cover; no cover over the pool costs less
  int regions = 0, distinct_regions = 0, rows = 0, cuts = 0;
  bool proven() const { return total <= bound * (1 + 1e-6) + 1e-6; }
};

// The prices of the pool's forms (kernels that columns share, pool.h) in us; a form with an infinite price is not
// chosen. Without measurements, and with Unmeasured::kLikely, they are the model's.
std::vector<double> form_times(const ColumnPool& pool, const CoverPrices& prices);

// The integer program that solve_cover() solves. `columns`, if given, receives for each column of the program its
// number in the pool.
CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros, std::vector<int>* columns = nullptr);

// Finds the cheapest cover over the pool. `micros`: prices in us, by form. `starts`: initial covers besides the pool's
// own, as columns. NotFound when every initial cover has a column with an infinite price. `work`: see
// compiler/cover/cover.h.
absl::StatusOr<PlannedCover> solve_cover(const ColumnPool& pool, const std::vector<double>& micros,
                                         const std::vector<std::vector<int>>& starts = {}, Work* work = nullptr);

// The cheapest cover over the pool, by form_times(). NotFound: as solve_cover().
absl::StatusOr<Cover> cover_planned(const ColumnPool& pool, const CoverPrices& prices = {}, Work* work = nullptr);

}  // namespace wl

// The planned cover: candidates, an integer program over them, and measured times in place of estimates as far as there
// are any (docs/decisions/0014-planned-covers.md). Pure: the same graph, machine and times give the same
// cover, so a restarted coordinator comes to it again from the trials that it stored.
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
  std::vector<int> columns;     // of the pool, as cover.groups; -1: a copy of an input to an output
  std::vector<double> micros;   // of forms: what was assumed
  double total = 0, bound = 0;  // of the cover; no cover over the pool takes less. Under the assumed times
  int regions = 0, distinct_regions = 0, rows = 0, cuts = 0;
  bool proven() const { return total <= bound * (1 + 1e-6) + 1e-6; }
};

// Prices of the pool's forms in us; infinite: not to be chosen. The model's where nothing was measured at all.
std::vector<double> form_times(const ColumnPool& pool, const CoverPrices& prices);

// What solve_cover() solves; `columns`: of the pool, those that may be chosen.
CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros, std::vector<int>* columns = nullptr);

// `starts`: covers to begin with besides the pool's own, as columns. NotFound: none of all is of columns that may be
// chosen.
absl::StatusOr<PlannedCover> solve_cover(const ColumnPool& pool, const std::vector<double>& micros,
                                         const std::vector<std::vector<int>>& starts = {});

// The cheapest cover over the pool. NotFound: as solve_cover().
absl::StatusOr<Cover> cover_planned(const ColumnPool& pool, const CoverPrices& prices = {});

}  // namespace wl

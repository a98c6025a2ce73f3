// The planned cover: candidates, an integer program over them, and measured times in place of estimates as far as there
// are any (docs/decisions/0014-planned-covers.md). Pure: the same graph, machine and times give the same
// cover, so a restarted coordinator comes to it again from the trials that it stored.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/search/cover_program.h"
#include "compiler/search/pool.h"

namespace wl {

// Measured times in us, by graph_hash() of a group's own graph.
using MeasuredTimes = std::map<std::string, double>;

struct PlannedCover {
  Cover cover;
  std::vector<int> columns;     // of the pool, as cover.groups; -1: a copy of an input to an output
  std::vector<double> micros;   // of forms: what was assumed
  double total = 0, bound = 0;  // of the cover; no cover over the pool takes less. Under the assumed times
  int regions = 0, distinct_regions = 0, rows = 0, cuts = 0;
  bool proven() const { return total <= bound * (1 + 1e-6) + 1e-6; }
};

// Prices of the pool's forms: measured, or the model's times how wrong it was about measured ones of the same class,
// times a little less than 1, so that what was never tried gets its chance.
std::vector<double> form_times(const ColumnPool& pool, const MeasuredTimes& times);

// What solve_cover() solves.
CoverProgram program_of(const ColumnPool& pool, const std::vector<double>& micros);

PlannedCover solve_cover(const ColumnPool& pool, const std::vector<double>& micros);

// InvalidArgument: some op has no kernel.
absl::StatusOr<Cover> cover_planned(const Graph& graph, const Machine& machine, const MeasuredTimes& times = {});

}  // namespace wl

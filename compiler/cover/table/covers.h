// The table of covers by name (covers.def), which the client, the coordinator and error messages read.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/cover/cover.h"
#include "compiler/cover/planned/pool.h"
#include "compiler/cover/planned/prices.h"

namespace wl {

// What the functions make_FUNCTION() below are given to make a cover.
struct CoverRequest {
  const Graph& graph;
  const Machine& machine;
  const Cover& greedy;        // the greedy cover of the graph
  const CoverPrices& prices;  // measured times of kernels, for covers that are chosen by them
  // Returns the pool of candidate kernels of the graph; the first call makes it.
  std::function<absl::StatusOr<std::shared_ptr<const ColumnPool>>()> pool;
  Work* work = nullptr;
};

// How values between the kernels of a cover are stored: in the graph's layout, or with channels innermost
// (compiler/ir/layout). kAsGiven: in the graph's layout, and the graph is not simplified first, so that the graph of a
// group stays as it is.
enum class CoverLayout { kOwn, kChannelsLast, kAsGiven };

struct CoverRow {
  std::string_view name, says;
  CoverLayout layout;
  bool refines, judged, above_greedy, simpler;
  int64_t most_ops;
  absl::StatusOr<Cover> (*make)(const CoverRequest& request);
};
// Returns the cover of that name. InvalidArgument, with a list of the known names: there is none.
absl::StatusOr<const CoverRow*> cover_named(std::string_view name);
// Returns the names of the covers that `row` is timed against as a whole; none unless the row is `judged`. If `relaid`,
// only those whose layout differs from the row's.
std::vector<std::string> simpler_covers(const CoverRow& row, bool relaid = false);
// Returns OK if the cover's row allows as many ops as the graph has; otherwise ResourceExhausted.
absl::Status fits_cover(const CoverRow& row, const Graph& graph);

#define WL_COVER(function, name, layout, refines, judged, above_greedy, simpler, most_ops, says) \
  absl::StatusOr<Cover> make_##function(const CoverRequest& request);
#include "compiler/cover/table/covers.def"
#undef WL_COVER

}  // namespace wl

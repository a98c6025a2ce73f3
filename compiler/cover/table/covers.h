// The covers by name: one table (covers.def) that the client, the coordinator and the messages read.
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

// What a cover may be made from.
struct CoverRequest {
  const Graph& graph;
  const Machine& machine;
  const Cover& greedy;        // of the graph
  const CoverPrices& prices;  // prices of kernels, for covers that refine (covers.def)
  // Returns the pool of the graph's candidate kernels, which is made at the first call.
  std::function<absl::StatusOr<std::shared_ptr<const ColumnPool>>()> pool;
  Work* work = nullptr;
};

// How the values between the kernels of a cover are stored: as the graph has them, or with channels innermost
// (compiler/ir/layout).
enum class CoverLayout { kOwn, kChannelsLast };

struct CoverRow {
  std::string_view name, says;
  CoverLayout layout;
  bool refines, judged, above_greedy, simpler;
  int64_t most_ops;
  absl::StatusOr<Cover> (*make)(const CoverRequest& request);
};
// The cover of that name. InvalidArgument, listing the known names, if there is none.
absl::StatusOr<const CoverRow*> cover_named(std::string_view name);
// The names of the covers that `row` is timed whole against; none unless it is judged.
std::vector<std::string> simpler_covers(const CoverRow& row);
// ResourceExhausted when the graph has more ops than the cover takes.
absl::Status fits_cover(const CoverRow& row, const Graph& graph);

#define WL_COVER(function, name, layout, refines, judged, above_greedy, simpler, most_ops, says) \
  absl::StatusOr<Cover> make_##function(const CoverRequest& request);
#include "compiler/cover/table/covers.def"
#undef WL_COVER

}  // namespace wl

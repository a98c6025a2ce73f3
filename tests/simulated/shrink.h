// Shrinks a group to smaller extents. Axes of a graph are products of factors that the ops equate or cut
// (domain/factors), and each factor may get another extent. The extents of pads, windows and concats follow from
// these, and a slice still begins at the same multiple of its extent. Only `same` decides how far a group may shrink,
// so a test can require that a schedule is still legal or that the kernel has the same instructions.
#pragma once

#include <functional>
#include <string>

#include "compiler/ir/graph.h"

namespace wl::testing {

// Returns a graph of the same computation with smaller extents, for which `same` returns true. It makes every extent
// in turn as small as `same` allows. Returns the graph itself if nothing can shrink. `same` is called only with
// verified graphs.
Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& same);

}  // namespace wl::testing

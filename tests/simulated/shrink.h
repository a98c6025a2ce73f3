// The same group at smaller extents. Axes of a graph are products of factors that its ops equate or cut (plan/factors),
// and each factor may have another extent: what pads, windows and concats make of an axis follows, slices begin at the
// same place within a part. Nothing but `same` decides how far a group may shrink, so a test can ask that a schedule
// still fits, or that the kernel is the same instructions.
#pragma once

#include <functional>
#include <string>

#include "compiler/ir/graph.h"

namespace wl::testing {

// A graph that computes the same on less, with which `same` agrees: every extent is as small as that allows, one after
// the other. The graph itself when nothing can shrink. `same` is asked about verified graphs only.
Graph shrink(const Graph& graph, const std::function<bool(const Graph&)>& same);

}  // namespace wl::testing

// What is known of the values of integers without computing them: which indices cannot lie outside their axis, and
// which generated inputs let the others lie inside.
#pragma once

#include <functional>

#include "compiler/ir/graph.h"

namespace wl {

// All values lie in [low, high], NaN apart.
struct Range {
  double low = 0;
  double high = 0;
  bool empty() const { return !(low <= high); }
  bool within(const Range& other) const { return low >= other.low && high <= other.high; }
};

using NodeLookup = std::function<const Node&(NodeId)>;

// What follows from a node's operands, whatever the values of inputs are. Looks at a bounded number of nodes; those of
// which nothing is known have the range of their dtype.
Range range_of(const NodeLookup& node, NodeId id);

// Whether every index of a take_along is known to select an element: it lies in [-extent, extent).
bool takes_inside(const NodeLookup& node, const Node& take);

// Decides how inputs of integers are generated. Those that are indices, or that indices are computed from by sums,
// products, quotients and views, lie inside the axes as far as one range for each input can do that. Those that neither
// an index nor a float is computed from have the whole range of their dtype: kernels are right for all integers, while
// floats that are made of extreme ones, such as masks, say little. Changes only inputs with the default fill.
void draw_integers(Graph& graph);

}  // namespace wl

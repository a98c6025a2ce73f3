// What is known about the values of nodes without computing them. It shows which indices cannot lie outside their axis,
// and how to generate inputs so that other indices lie inside.
#pragma once

#include <functional>

#include "compiler/ir/graph.h"

namespace wl {

// All values, except NaN, lie in [low, high].
struct Range {
  double low = 0;
  double high = 0;
  bool empty() const { return !(low <= high); }
  bool within(const Range& other) const { return low >= other.low && high <= other.high; }
};

using NodeLookup = std::function<const Node&(NodeId)>;

// Returns the range of a node's values that follows from its operands, whatever the values of inputs are. It looks at a
// bounded number of nodes; a node about which nothing is known has the range of its dtype.
Range range_of(const NodeLookup& node, NodeId id);

// Whether every index of the take_along is known to lie in [-extent, extent) and so to select an element.
bool takes_inside(const NodeLookup& node, const Node& take);

// Decides how integer inputs are generated, and sets their fills. Inputs that are indices of a take_along, or from
// which such indices are computed by sums, products, quotients and views, get a range that keeps the indices inside
// their axes, as far as one range for each input can. Inputs from which neither an index nor a float is computed get
// the whole range of their dtype, since kernels are right for all integers; floats computed from extreme integers, as
// from masks, would show little. Changes only inputs with the default fill.
void draw_integers(Graph& graph);

}  // namespace wl

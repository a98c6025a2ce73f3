// Finds in which range the values of nodes lie, without computing the values. The ranges show which indices of gathers
// cannot lie outside their axes, and how inputs must be generated to keep the other indices inside.
#pragma once

#include <functional>

#include "compiler/ir/graph.h"

namespace wl {

// An interval [low, high] that contains all values of a node except NaN.
struct Range {
  double low = 0;
  double high = 0;
  bool empty() const { return !(low <= high); }
  bool within(const Range& other) const { return low >= other.low && high <= other.high; }
};

using NodeLookup = std::function<const Node&(NodeId)>;

// Returns the range in which the node's values lie for all values of the inputs, as far as it can be derived from the
// node's operands. Only a limited number of nodes is looked at. If nothing is known about a node, its range is that of
// its dtype.
Range range_of(const NodeLookup& node, NodeId id);

// Whether every index of the take_along is known to lie in [-extent, extent) and so to select an element.
bool takes_inside(const NodeLookup& node, const Node& take);

// Decides how integer inputs are generated, and sets their fills. Inputs that are indices of a take_along, or from
// which such indices are computed by sums, products, quotients and views, get a range that keeps the indices inside
// their axes, as far as one range per input can do so. Inputs from which neither an index nor a float is computed get
// the whole range of their dtype, since kernels must be right for all integers. All other inputs keep their fill: where
// floats are computed from integers, such as masks, extreme integers would hide errors. Fills other than the default
// one are not changed.
void draw_integers(Graph& graph);

}  // namespace wl

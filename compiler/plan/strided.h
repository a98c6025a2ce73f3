// Where the elements of a view of a stored tensor lie: an offset and, for every axis of the view, a mixed-radix list of
// (extent, stride) terms, outermost first; extent 1 is the empty list. Views of inputs stay strided as long as their
// cuts nest: slice, window, transpose, broadcast and reshape are arithmetic on the terms.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Term {
  int64_t extent = 1;
  int64_t stride = 0;
  bool operator==(const Term&) const = default;
};

struct Strided {
  int64_t offset = 0;
  std::vector<std::vector<Term>> axes;
};

// The row-major buffer of a tensor, in elements.
Strided strided_of(const Shape& shape);
// The value of an iota node.
Strided strided_iota(const Node& iota);
// The view's elements, given its operand's. InvalidArgument (naming the node) when they are not strided: pad, concat,
// windows or strided slices of an axis that is itself several pieces of memory, and reshapes whose cuts do not nest.
absl::StatusOr<Strided> apply_view(const Graph& graph, NodeId view, Strided operand);
// Neighbouring terms that together are one stride become one term.
void merge_terms(std::vector<Term>& terms);

}  // namespace wl

// The axes of values that a group computes, as lists of factors of its loops, and the effect of views on these axes.
#pragma once

#include <vector>

#include "compiler/domain/factors.h"
#include "compiler/ir/graph.h"

namespace wl {

inline bool is_view(const Node& node) {
  return class_of(node.op) == OpClass::kView;
}
inline bool is_leaf(const Node& node) {
  return class_of(node.op) == OpClass::kLeaf;
}
inline bool is_computed(const Node& node) {
  return !is_view(node) && !is_leaf(node);
}

// Returns the views between `id` and the value that they view, the one that is applied first in front. Sets `source` to
// that value, which may be a concat of several values.
std::vector<NodeId> views_of(const Graph& graph, NodeId id, NodeId& source);

using Axes = std::vector<FactorList>;

// Returns the axes of a view, given the axes of its operand, a value that the group computes. The error is
// InvalidArgument and names the view if the view moves elements to other coordinates, or cuts axes in a way that does
// not nest.
absl::StatusOr<Axes> apply_view(const Graph& graph, NodeId view, const Axes& operand, Factors& factors);

}  // namespace wl

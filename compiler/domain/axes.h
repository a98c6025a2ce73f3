// The axes of values that a group computes, as lists of factors of the group's loops, and how views change these axes.
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

// Sets `source` to the value that `id` is a view of; this may be a concat of several values. Returns the views between
// `source` and `id`, starting with the one that is applied to `source`.
std::vector<NodeId> views_of(const Graph& graph, NodeId id, NodeId& source);

using Axes = std::vector<FactorList>;

// Returns the axes of a view, given those of its operand, which must be a value that the group computes. Fails if the
// view moves elements to other coordinates, or cuts axes in a way that does not nest; the error is InvalidArgument and
// names the view.
absl::StatusOr<Axes> apply_view(const Graph& graph, NodeId view, const Axes& operand, Factors& factors);

}  // namespace wl

// The axes of values that a group computes, as factors of its loops, and what views do to them.
#pragma once

#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/factors.h"

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

// The views between `id` and the value behind them, first applied first; that value, or a concat of several, is
// `source`.
std::vector<NodeId> views_of(const Graph& graph, NodeId id, NodeId& source);

using Axes = std::vector<FactorList>;

// The axes of a view of a value computed here. InvalidArgument (naming the view) when it moves elements to other
// coordinates, or cuts axes in a way that does not nest.
absl::StatusOr<Axes> apply_view(const Graph& graph, NodeId view, const Axes& operand, Factors& factors);

}  // namespace wl

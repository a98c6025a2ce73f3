// Finds weights of a narrow dtype that a product reads in a wider dtype. Only fold_weights() uses this header.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Widened {
  NodeId narrow;               // the narrow weight: an input with as many elements as the product's operand
  std::vector<NodeId> beside;  // broadcasts that the conversion also reads: scales, zero points
};

// Returns how the value `id` is computed from one smaller weight, if this takes only reshapes, transposes and so little
// elementwise work (at most kCheapWork) that a kernel may repeat it for every tile. Returns nullopt if it takes other
// ops or more work, or if another node also reads a value between the weight and `id`. `precomputable` is the result of
// precomputable_values(). `is_sole` says of a value whether only one node reads it in every execution.
std::optional<Widened> widened(const Graph& graph, const std::vector<bool>& precomputable, NodeId id,
                               const std::function<bool(NodeId)>& is_sole);

}  // namespace wl

// Finds weights of a narrow dtype that a product reads in a wider one. Internal to fold_weights.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Widened {
  NodeId narrow;               // the narrow weight: an input with as many elements as the product reads
  std::vector<NodeId> beside;  // broadcasts that the conversion reads too: scales, zero points
};

// Returns how the value `id` is computed from one smaller weight by reshapes, transposes and so little elementwise work
// (at most kCheapWork) that a kernel may repeat it for every tile. Returns nullopt if it is not, or if something else
// reads a value on the way. `precomputable`: see precomputable_values(); `is_sole`: whether one node alone reads a
// value in every run.
std::optional<Widened> widened(const Graph& graph, const std::vector<bool>& precomputable, NodeId id,
                               const std::function<bool(NodeId)>& is_sole);

}  // namespace wl

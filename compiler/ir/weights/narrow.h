// Weights of narrow elements that a product reads as wider ones. Internal to fold_weights.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Widened {
  NodeId narrow;               // an input with as many elements as what the product reads
  std::vector<NodeId> beside;  // broadcasts that the work reads too: scales, zero points
};

// How a value is made of one narrower weight by reshapes, transposes and so little elementwise work that a kernel may
// do it again for every tile; nullopt: it is not, or something else reads a value on the way. `precomputable`: what
// weights decide; `is_sole`: whether a value has one reader in every run.
std::optional<Widened> widened(const Graph& graph, const std::vector<bool>& precomputable, NodeId id,
                               const std::function<bool(NodeId)>& is_sole);

}  // namespace wl

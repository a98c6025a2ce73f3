// A step that fold_weights() takes before it cuts the graph: it moves factors into the weights of products. Only
// fold_weights() uses this header.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// Returns for every node whether it is precomputable: a weight, or computed from weights and constants alone, with at
// least one weight. Integers of 64 bits are precomputable only if views and gathers alone make them. `weights` are
// names of inputs.
std::vector<bool> precomputable_values(const Graph& graph, const std::vector<std::string>& weights);

// Returns the graph after moving precomputable factors into weights. A factor that multiplies each slice of a product
// (such as a batch norm after a convolution) is multiplied into the product's weights instead. Between the product and
// its factor there may be adds and views that nothing else reads. Fails only if the graph is invalid.
absl::StatusOr<Graph> with_factors_in_weights(const Graph& graph, const std::vector<std::string>& weights);

}  // namespace wl

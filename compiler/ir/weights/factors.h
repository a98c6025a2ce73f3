// The first step of fold_weights: factors move into the weights of products. Internal to it.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// For every node, whether it is computed from weights and constants alone, with at least one weight. Sums and products
// of integers of 64 bits are not.
std::vector<bool> precomputable_values(const Graph& graph, const std::vector<std::string>& weights);

// Returns the graph with each factor per slice of a product (such as a batch norm after a convolution) multiplied into
// the product's weights, past adds and views between that nothing else reads. Fails only if the graph is invalid.
absl::StatusOr<Graph> with_factors_in_weights(const Graph& graph, const std::vector<std::string>& weights);

}  // namespace wl

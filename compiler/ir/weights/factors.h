// A step of fold_weights before its cut: it moves factors into the weights of products. Internal to fold_weights.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// Returns for every node whether it is precomputable: a weight, or computed from weights and constants alone, with at
// least one weight. Integers of 64 bits count only if views and gathers alone make them. `weights`: names of inputs.
std::vector<bool> precomputable_values(const Graph& graph, const std::vector<std::string>& weights);

// Returns the graph with each precomputable factor per slice of a product (such as a batch norm after a convolution)
// multiplied into the product's weights. Between the product and its factor there may be adds and views that nothing
// else reads. Fails only if the graph is invalid.
absl::StatusOr<Graph> with_factors_in_weights(const Graph& graph, const std::vector<std::string>& weights);

}  // namespace wl

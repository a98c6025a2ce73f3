// Values that a model computes from its weights alone are computed once, before the first run. The graph is cut into a
// part that every run computes and a part that computes its folded weights. Before the cut, a factor per slice of a
// product (such as a batch norm after a convolution) moves into the product's weights, past any adds and views between.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// A weight that is computed. `from` has one output of that name, and its inputs are weights of the model.
struct FoldedWeight {
  std::string name;
  Graph from;
};

// Returns the value of a folded weight given its operands, row-major in the memory form of its dtype.
absl::StatusOr<std::string> value_of(const FoldedWeight& weight, const InputReader& operands);

struct WeightFolding {
  Graph graph;                       // the graph that every run computes; reads folded weights by name
  std::vector<std::string> weights;  // names of its inputs that are weights, including folded ones, in node order
  std::vector<FoldedWeight> folded;
};

// `weights`: names of inputs of `graph`. A value that would be larger than its operands is not folded, nor is a view of
// one weight, which costs nothing. Fails only if the graph is invalid.
absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights);

}  // namespace wl

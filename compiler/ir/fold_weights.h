// What a model computes from its weights alone is computed once, before the first run: a graph is cut into the part
// that every run computes and weights that others give. Before that, a factor per slice of a product - a batch norm
// after a convolution - moves into the product's weights, whatever adds and views lie between.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// A weight that is computed. `from` has one output of that name; its inputs are weights of the model, by name.
struct FoldedWeight {
  std::string name;
  Graph from;
};

// Its value from those of its operands, row-major in the memory form of its dtype.
absl::StatusOr<std::string> value_of(const FoldedWeight& weight, const InputReader& operands);

struct WeightFolding {
  Graph graph;                       // what runs; reads folded weights by name
  std::vector<std::string> weights;  // names of its inputs that are weights, folded ones among them, in node order
  std::vector<FoldedWeight> folded;
};

// `weights`: names of inputs of `graph`. Nothing is folded that would be larger than what it is made from, nor views of
// one weight, which cost nothing. Errors: none but those of an invalid graph.
absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights);

}  // namespace wl

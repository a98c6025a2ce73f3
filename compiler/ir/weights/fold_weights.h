// Values that a model computes from its weights alone are computed once, before the first run. The graph is cut into a
// part that every run computes and a part that computes its folded weights. Before the cut, products of dequantised
// integers become products of the integers, and a factor per slice of a product (such as a batch norm after a
// convolution) moves into the product's weights, past any adds and views between. Weights can be put into the order in
// which the micro-kernels of products read them (panels.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// A weight that is computed. `from` has one output of that name, and its inputs are weights of the model.
struct FoldedWeight {
  std::string name;
  Graph from;
};

// Writes the value of a folded weight given its operands, row-major in the memory form of its dtype, to `value`.
// Weights are most of a model's memory, so they are computed where they stay.
absl::Status write_value(const FoldedWeight& weight, const InputReader& operands, char* value);
// Writes the same of one that has the elements of one weight in another order, from that weight's bytes, which takes a
// few nanoseconds for an element; false, and nothing is written: it is computed.
bool write_moved(const FoldedWeight& weight, std::string_view operand, char* value);
// The other way: the bytes of that one weight, `from`'s only input, from those of the folded one.
std::optional<std::string> operand_of_moved(const FoldedWeight& weight, std::string_view value);

struct WeightFolding {
  Graph graph;                       // the graph that every run computes; reads folded weights by name
  std::vector<std::string> weights;  // names of its inputs that are weights, including folded ones, in node order
  std::vector<FoldedWeight> folded;
};

// `weights`: names of inputs of `graph`. A value that would be larger than its operands is not folded, nor is a view of
// one weight, which costs nothing. `panels`: columns of panels, of which a weight gets the first that divide its own;
// none: weights keep their order. Panels may be larger than a weight, but less than twice as large. A weight of narrow
// elements that a product reads wider is put into panels as it is, and every run widens it. A weight is put into panels
// if nothing reads it in another order, so that it is there once. Fails only if the graph is invalid.
absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights,
                                           const std::vector<int64_t>& panels = {});

}  // namespace wl

// Values that a model computes from its weights alone are folded: they are computed once, before the first run. The
// graph is cut into a part that every run computes and a part that computes the folded weights, which the first part
// reads. Before the cut, products of dequantised integers become products of the integers, and a factor per slice of a
// product (such as a batch norm after a convolution) moves into the product's weights, past adds and views between.
// Weights can also be stored in the order in which the micro-kernels of products read them (panels.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// A weight that is computed before the first run. The graph `from` has one output, called `name`; its inputs are
// weights of the model.
struct FoldedWeight {
  std::string name;
  Graph from;
};

// Computes a folded weight from its operands (the inputs of `from`) and writes it to `value`, row-major, in the memory
// form of its dtype. Weights are most of a model's memory, so `value` is the place where the weight stays.
absl::Status write_value(const FoldedWeight& weight, const InputReader& operands, char* value);
// Writes the same bytes faster, in a few nanoseconds an element, if the folded weight only has the elements of one
// weight in another order. `operand`: the bytes of that weight. Returns false, and writes nothing, for any other folded
// weight.
bool write_moved(const FoldedWeight& weight, std::string_view operand, char* value);
// The inverse of write_moved: returns the bytes of that one weight, given the bytes `value` of the folded one; nullopt
// for any other folded weight.
std::optional<std::string> operand_of_moved(const FoldedWeight& weight, std::string_view value);

struct WeightFolding {
  Graph graph;                       // the graph that every run computes; folded weights are inputs of it
  std::vector<std::string> weights;  // names of its inputs that are weights, including folded ones, in node order
  std::vector<FoldedWeight> folded;
};

// `weights`: names of inputs of `graph`. A value that would be larger than the weights it is computed from is not
// folded, and neither is a view, which costs nothing to read. `panels`: the widths that panels may have, in columns; a
// weight gets the first that divides its number of columns (panels.h). Empty: weights keep their order. What is put
// into panels must be less than twice as large as the weights it is computed from, and nothing may read it in another
// order, so that it is stored once. A weight of a narrow dtype that a product reads in a wider one is put into panels
// in the narrow dtype, and every run widens it. Fails only if the graph is invalid.
absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights,
                                           const std::vector<int64_t>& panels = {});

}  // namespace wl

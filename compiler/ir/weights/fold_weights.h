// Values that a model computes from its weights alone are folded: they are computed once, before the first execution.
// The graph is cut into a part that every execution computes and a part that computes the folded weights, which the
// first part reads. Before the cut, products of dequantised integers become products of the integers. A factor for each
// slice of a product (such as a batch norm after a convolution) moves into the product's weights, through adds and
// views between them. Weights can also be stored in the order in which the micro-kernels of products read them
// (panels.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// A weight that is computed before the first execution. The graph `from` computes it: its output is called `name`, and
// its inputs are weights of the model.
struct FoldedWeight {
  std::string name;
  Graph from;
};

// Computes a folded weight from its operands (the inputs of `from`) and writes it to `value`, row-major, each element
// as its dtype is stored in memory. `value` should be the memory in which the weight stays, since weights are most of a
// model's memory.
absl::Status write_value(const FoldedWeight& weight, const InputReader& operands, char* value);
// Writes the same bytes as write_value(), but faster: in a few nanoseconds per element. This is possible only if the
// elements of the folded weight are those of one operand in another order; `operand` has the bytes of that operand.
// For other folded weights, returns false and writes nothing.
bool write_moved(const FoldedWeight& weight, std::string_view operand, char* value);
// The inverse of write_moved(): returns the bytes of the operand, given the bytes `value` of the folded weight; nullopt
// for a folded weight of any other kind.
std::optional<std::string> operand_of_moved(const FoldedWeight& weight, std::string_view value);

struct WeightFolding {
  Graph graph;                       // the graph that every execution computes; folded weights are inputs of it
  std::vector<std::string> weights;  // names of the graph's inputs that are weights, also folded ones, in node order
  std::vector<FoldedWeight> folded;
};

// Folds the weights of `graph`; `weights` are names of its inputs. A value that would be larger than the weights it is
// computed from is not folded, nor is a view, which costs nothing to read. `panels` has the widths that panels may
// have, in columns; a weight gets the first that divides its number of columns (panels.h). If it is empty, weights keep
// their order. A value that is put into panels must be less than twice as large as the weights it is computed from, and
// nothing may read it in another order, so that it is stored only once. A weight of a narrow dtype that a product reads
// in a wider one is put into panels in the narrow dtype, and every execution widens it. Fails only if the graph is
// invalid.
absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights,
                                           const std::vector<int64_t>& panels = {});

}  // namespace wl

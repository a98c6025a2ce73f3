// Internal to the oracle: the demanded elements of every node and their values. demand.cpp walks the nodes backwards
// and collects index sets; eval.cpp walks them forwards and computes the values of just those elements.
#pragma once

#include <memory>
#include <vector>

#include "compiler/ir/bound.h"
#include "compiler/ir/element_set.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/index_map.h"

namespace wl {

// Values of a node's demanded elements, in index order. Errors are rounded up.
struct Column {
  std::vector<double> value;
  std::vector<float> worst, spread;
  std::vector<int64_t> whole;  // of integers of 64 bits: as of Estimate
  void resize(size_t n, DType dtype) {
    value.resize(n);
    worst.resize(n);
    spread.resize(n);
    if (dtype == DType::i64 || dtype == DType::u64) whole.resize(n);
  }
  Estimate at(size_t i) const { return {value[i], worst[i], spread[i], whole.empty() ? 0 : whole[i]}; }
  void put(size_t i, const Estimate& v) {
    value[i] = v.value;
    if (!whole.empty()) whole[i] = v.whole;
    worst[i] = up(v.worst);
    spread[i] = up(v.spread);
  }
  static float up(double error) { return static_cast<float>(error * (1 + 0x1p-22) + (error > 0 ? 0x1p-149 : 0)); }
};

// The index maps of a reduction's operand: from output elements, and along the reduced axes.
struct ReduceMaps {
  ReduceMaps(const Node& node, const Shape& operand);
  IndexMap outer, inner;
};

// The index maps of a contraction's operands: from output elements to rows of a and b, and the steps along the summed
// letters.
struct ContractMaps {
  ContractMaps(const Node& node, const Shape& a, const Shape& b);
  IndexMap a_row, b_row, a_step, b_step;
  int64_t terms = 1;
};

// How a value is kept that decides on which side of a jump (a comparison, floor, a conversion to integers) another one
// falls: as exactly as a double can hold it, or rounded to its dtype after every operation, as a program does that
// stores each value. The oracle's bounds cover both sides; who needs the value that other programs have takes the
// second.
enum class BeforeJumps { kExact, kRounded };

// What an index outside its axis is: an error, or the nearest element, as for kernels that cannot tell of errors.
enum class Outside { kError, kNearest };

// As evaluate() in eval.h, which is exact and tells of errors.
absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries, BeforeJumps before_jumps,
                                                         Outside outside = Outside::kError);

class Evaluator {
 public:
  Evaluator(const Graph& graph, const InputReader& inputs, BeforeJumps before_jumps, Outside outside);
  absl::Status demand(const std::vector<Query>& queries);
  absl::Status compute();
  std::vector<Value> read(const Query& query) const;

 private:
  absl::Status add(NodeId id, const ElementSet& set);
  ElementSet& set_of(NodeId id);
  absl::Status propagate(NodeId id);
  void demand_reduce(const Node& node, const ElementSet& set);
  void demand_contract(const Node& node, const ElementSet& set);
  absl::Status demand_take_along(NodeId id, const ElementSet& set);
  bool cheap_index(NodeId id) const;

  absl::Status compute_node(NodeId id);
  void compute_leaf(NodeId id, Column& out);
  void compute_elementwise(NodeId id, const ElementSet& set, Column& out);
  void compute_view(const Node& node, const ElementSet& set, Column& out);
  void compute_reduce(const Node& node, const ElementSet& set, Column& out);
  void compute_contract(const Node& node, const ElementSet& set, Column& out);
  absl::Status compute_take_along(NodeId id, const ElementSet& set, Column& out);
  Estimate element(NodeId id, int64_t index) const {
    return columns_[id].at(static_cast<size_t>(sets_[id]->position(index)));
  }
  const Node& node(NodeId id) const { return graph_.nodes[id]; }

  const Graph& graph_;
  const InputReader& inputs_;
  const BeforeJumps before_jumps_;
  const Outside outside_;
  const std::vector<bool> loose_exps_;             // rounded_exps()
  std::vector<bool> rounded_;                      // nodes whose values are rounded to their dtype
  std::vector<std::unique_ptr<ElementSet>> sets_;  // null for a node of which no element is demanded
  std::vector<Column> columns_;
  std::vector<NodeId> last_user_;  // last user of each node, after which its values are freed; none for queried nodes
  int64_t demanded_ = 0;
};

// The source of an element of a pad or concat: its operand (-1: the pad value) and the element of that operand.
struct Origin {
  int operand;
  int64_t index;
};
Origin origin_of(const Graph& graph, const Node& node, int64_t index);

// Returns whether `index` selects an element along take_along's axis, and the position of that or of the nearest one.
struct Picked {
  bool inside;
  int64_t at;
};
Picked picked(double index, int64_t extent);
// take_along: returns the element of operand 0 that output element `i` reads when its index is `pick`.
int64_t taken_from(const Graph& graph, const Node& node, int64_t i, int64_t pick);

}  // namespace wl

// Internals of the oracle (eval.h). The demanded elements of a node are those that the queries need. demand.cpp walks
// the nodes backwards and collects the sets of demanded elements; eval.cpp walks the nodes forwards and computes the
// values of just those elements.
#pragma once

#include <memory>
#include <vector>

#include "compiler/ir/bound.h"
#include "compiler/ir/element_set.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/index_map.h"

namespace wl {

// The values of a node's demanded elements with their errors, in the order of the elements' indices. Errors are rounded
// up to f32.
struct Column {
  std::vector<double> value;
  std::vector<float> worst, spread;
  std::vector<int64_t> whole;  // the bits of 64-bit integers, as in Estimate; empty for other dtypes
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

// Where a reduction reads its operand. `outer` maps each output element to the first of the operand elements that are
// reduced to it; `inner` gives the offsets of all these elements from the first one.
struct ReduceMaps {
  ReduceMaps(const Node& node, const Shape& operand);
  IndexMap outer, inner;
};

// Where a contraction reads its operands a and b. An output element is a sum over the `terms` values of the summed
// letters. `a_row` and `b_row` map the output element to the first element of a and of b that it needs; `a_step` and
// `b_step` give the offsets from there to the elements of all terms.
struct ContractMaps {
  ContractMaps(const Node& node, const Shape& a, const Shape& b);
  IndexMap a_row, b_row, a_step, b_step;
  int64_t terms = 1;
};

// How the oracle computes the operand of an op that jumps (a comparison, floor, a conversion to integers), where the
// last bits of the operand can decide on which side of the jump the result lies. kExact: as exactly as a double can.
// kRounded: rounded to the dtype after every operation, as in a program that stores each value. The oracle's bounds
// cover both sides of the jump; kRounded is for callers that need the value which other programs compute.
enum class BeforeJumps { kExact, kRounded };

// What happens if an index of a take_along lies outside its axis: an error, or the nearest element is read, as by
// kernels that cannot report errors.
enum class Outside { kError, kNearest };

// Like evaluate() in eval.h, which uses kExact and kError. Also fails with the error of `work` once it has ended.
absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries, BeforeJumps before_jumps,
                                                         Outside outside = Outside::kError, Work* work = nullptr);

// The steps of Work that are counted for the demanded elements, or the values, of one node.
inline constexpr uint64_t kOracleSteps = 1000;

class Evaluator {
 public:
  Evaluator(const Graph& graph, const InputReader& inputs, BeforeJumps before_jumps, Outside outside, Work* work);
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
  Work* const work_;
  const std::vector<bool> loose_exps_;  // for each node: whether it is an exp that may be less exact (rounded_exps.h)
  std::vector<bool> rounded_;           // for each node: whether its values are rounded to its dtype (kRounded)
  std::vector<std::unique_ptr<ElementSet>> sets_;  // for each node: its demanded elements; null if there are none
  std::vector<Column> columns_;
  // For each node: the last node that uses it, after which its values are freed unless queried.
  std::vector<NodeId> last_user_;
  int64_t demanded_ = 0;
};

// Which operand an element of a pad or concat comes from (-1: it is the pad value), and its index in that operand.
struct Origin {
  int operand;
  int64_t index;
};
Origin origin_of(const Graph& graph, const Node& node, int64_t index);

// Whether an index of a take_along lies in [-extent, extent), and which position along the axis, counted from the
// front, it selects. For an index outside that range, `at` is the nearest position.
struct Picked {
  bool inside;
  int64_t at;
};
Picked picked(double index, int64_t extent);
// Returns which element of operand 0 a take_along reads for its output element `i`. `pick` is the position that the
// index selects along the axis, counted from the front.
int64_t taken_from(const Graph& graph, const Node& node, int64_t i, int64_t pick);

}  // namespace wl

#include "compiler/ir/weights/factors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/build.h"
#include "compiler/ir/weights/narrow.h"

namespace wl {

namespace {

// Whether a node's values can be computed in advance as doubles. Doubles cannot hold large integers of 64 bits exactly,
// so a node with such integers qualifies only if it is a view or a gather, which move values unchanged.
bool fits_double(const Node& node) {
  const bool wide = node.dtype == DType::i64 || node.dtype == DType::u64;
  return !wide || class_of(node.op) == OpClass::kView || class_of(node.op) == OpClass::kGather;
}

}  // namespace

std::vector<bool> precomputable_values(const Graph& graph, const std::vector<std::string>& weights) {
  const std::set<std::string> names(weights.begin(), weights.end());
  std::vector<bool> precomputable(graph.nodes.size()), fixed(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto leaf = [&](NodeId id) { return precomputable[id] || fixed[id]; };
    if (node.op == Op::input) {
      precomputable[i] = names.contains(node.text);
    } else if (class_of(node.op) == OpClass::kLeaf) {
      fixed[i] = true;
    } else if (fits_double(node) && std::all_of(node.operands.begin(), node.operands.end(), leaf)) {
      precomputable[i] =
          std::any_of(node.operands.begin(), node.operands.end(), [&](NodeId id) { return precomputable[id]; });
      fixed[i] = !precomputable[i];
    }
  }
  return precomputable;
}

namespace {

// Factors that a tensor is multiplied with: `values` has one for each position along `axes`.
struct Factor {
  NodeId values;              // a node of the graph being built, whose shape is the extents of `axes`
  std::vector<int64_t> axes;  // the axes of the tensor along which the factors vary, in ascending order
};

constexpr int kDeepest = 16;  // the most adds and views between a product and its factor

// The sum of a product (a contract) and `values`; each value is added to a whole slice of the product.
struct Sum {
  NodeId product, values;
  NodeId shown = -1;  // the values broadcast to the product's shape
};

// Copies a graph and, while doing so, moves factors of products into the weights of these products.
class FactorMover {
 public:
  FactorMover(const Graph& graph, const std::vector<std::string>& weights)
      : graph_(graph),
        precomputable_(precomputable_values(graph, weights)),
        uses_(graph.nodes.size()),
        copy_(graph.nodes.size()) {
    for (const Node& node : graph.nodes)
      for (NodeId operand : node.operands) ++uses_[operand];
    for (const Output& output : graph.outputs) ++uses_[output.node];
  }

  absl::StatusOr<Graph> run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      std::optional<NodeId> moved = move_factor(graph_.nodes[i]);
      if (!moved) moved = merge_sum(graph_.nodes[i]);
      Node node = graph_.nodes[i];
      for (NodeId& operand : node.operands) operand = copy_[operand];
      copy_[i] = moved ? *moved : to_.add_node(std::move(node));
    }
    for (const Output& output : graph_.outputs) to_.output(output.name, copy_[output.node]);
    return to_.finish();
  }

 private:
  std::optional<NodeId> move_factor(const Node& node) {
    if (node.op != Op::mul || (node.dtype != DType::f32 && node.dtype != DType::f64)) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const NodeId factor = node.operands[side], rest = node.operands[1 - side];
      const Node& stretched = graph_.nodes[factor];
      if (!precomputable_[factor] || precomputable_[rest] || stretched.op != Op::broadcast) continue;
      return times(rest, {copy_[stretched.operands[0]], stretched.ints});
    }
    return std::nullopt;
  }

  // Builds the product of value `id` and the factor, so that an execution needs no more operations than for `id` alone.
  // Returns the new node; nullopt if there is no such product.
  std::optional<NodeId> times(NodeId id, const Factor& factor, int depth = 0) {
    const Node& node = graph_.nodes[id];
    if (precomputable_[id]) {
      // The factor multiplies the operand of the broadcast and not its result, so that the folded weight stays small.
      if (node.op == Op::broadcast && node.ints == factor.axes)
        return to_.broadcast(to_.mul(copy_[node.operands[0]], factor.values), node.shape, node.ints);
      return to_.mul(copy_[id], to_.broadcast(factor.values, node.shape, factor.axes));
    }
    if (uses_[id] > 1 || depth > kDeepest) return std::nullopt;
    switch (node.op) {
      case Op::add:
      case Op::sub: {
        if (!precomputable_[node.operands[0]] && !precomputable_[node.operands[1]]) return std::nullopt;
        const auto left = times(node.operands[0], factor, depth + 1),
                   right = times(node.operands[1], factor, depth + 1);
        if (!left || !right) return std::nullopt;
        return sum(node.op, *left, *right, precomputable_[node.operands[0]]);
      }
      case Op::transpose: {
        std::vector<int64_t> before;
        for (int64_t axis : factor.axes) before.push_back(node.ints[axis]);
        const auto below = times(node.operands[0], sorted(factor.values, before), depth + 1);
        return below ? std::optional(to_.transpose(*below, node.ints)) : std::nullopt;
      }
      case Op::reshape: {
        const auto before = through_reshape(graph_.nodes[node.operands[0]].shape, node.shape, factor);
        const auto below = before ? times(node.operands[0], *before, depth + 1) : std::nullopt;
        return below ? std::optional(to_.reshape(*below, node.shape)) : std::nullopt;
      }
      case Op::contract:
        return into_operand(node, factor);
      default:
        return std::nullopt;
    }
  }

  // Builds left + right or left - right. If one operand is a precomputable broadcast and the other a sum in sums_,
  // the values that both add to the product are added up in advance.
  NodeId sum(Op op, NodeId left, NodeId right, bool precomputable_left) {
    if (precomputable_left && op == Op::add) std::swap(left, right);
    const Node addend = to_.node(right);
    if ((precomputable_left && op == Op::sub) || addend.op != Op::broadcast) return to_.elementwise(op, {left, right});
    const NodeId own = addend.operands[0];
    Sum result{left, op == Op::add ? own : to_.elementwise(Op::neg, {own})};
    const auto known = sums_.find(left);
    if (known != sums_.end() && to_.node(known->second.shown).ints == addend.ints)
      result = {known->second.product, to_.add(known->second.values, result.values)};
    result.shown = to_.broadcast(result.values, addend.shape, addend.ints);
    const NodeId id = to_.add(result.product, result.shown);
    sums_[id] = result;
    return id;
  }

  std::optional<NodeId> merge_sum(const Node& node) {
    if (node.op != Op::add && node.op != Op::sub) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const NodeId addend = node.operands[side], rest = node.operands[1 - side];
      if (!precomputable_[addend] || precomputable_[rest] || uses_[rest] > 1 || !sums_.contains(copy_[rest])) continue;
      return sum(node.op, copy_[node.operands[0]], copy_[node.operands[1]], side == 0);
    }
    return std::nullopt;
  }

  // Multiplies the factor into an operand of the product that is precomputable and has all axes of the factor. A weight
  // that every execution converts from a narrower dtype (narrow.h) stays as it is, so no factor moves into it.
  std::optional<NodeId> into_operand(const Node& node, const Factor& factor) {
    const auto einsum = parse_einsum(node.text);
    if (!einsum.ok()) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const NodeId weight = node.operands[side];
      if (!precomputable_[weight] || graph_.nodes[weight].dtype != node.dtype) continue;
      if (widened(graph_, precomputable_, weight, [&](NodeId id) { return uses_[id] == 1; })) continue;
      const std::string& letters = side == 0 ? einsum->a : einsum->b;
      std::vector<int64_t> axes;
      for (int64_t axis : factor.axes) {
        const size_t at = letters.find(einsum->out[axis]);
        if (at != std::string::npos) axes.push_back(static_cast<int64_t>(at));
      }
      if (axes.size() != factor.axes.size()) continue;
      const Factor own = sorted(factor.values, axes);
      const NodeId scaled = to_.mul(copy_[weight], to_.broadcast(own.values, graph_.nodes[weight].shape, own.axes));
      std::vector<NodeId> operands = {copy_[node.operands[0]], copy_[node.operands[1]]};
      operands[side] = scaled;
      return to_.contract(operands[0], operands[1], node.text, node.dtype, node.tf32);
    }
    return std::nullopt;
  }

  // Returns a factor with the given values, transposed so that `axes` ascend. Axis i of `values` belongs to axis
  // axes[i].
  Factor sorted(NodeId values, std::vector<int64_t> axes) {
    values = to_.in_order(values, axes);
    return {values, std::move(axes)};
  }

  // Returns the factor of a reshape's result as a factor of the reshape's operand; `before` is the operand's shape
  // and `after` that of the result. Returns nullopt unless the factor's axes consist of whole axes of the operand.
  std::optional<Factor> through_reshape(const Shape& before, const Shape& after, const Factor& factor) {
    std::vector<int64_t> axes;
    Shape extents;
    size_t i = 0, j = 0;
    while (i < before.size() || j < after.size()) {
      // Finds the shortest groups of neighbouring axes of the two shapes that have the same number of elements.
      const size_t first = i, own = j;
      int64_t left = 1, right = 1;
      do {
        if ((left <= right && i < before.size()) || j == after.size()) {
          if (i == before.size()) return std::nullopt;
          left *= before[i++];
        } else {
          right *= after[j++];
        }
      } while (left != right);
      bool part = false, whole = true;
      for (size_t axis = own; axis < j; ++axis) {
        const bool mine = std::find(factor.axes.begin(), factor.axes.end(), axis) != factor.axes.end();
        part |= mine;
        whole &= mine || after[axis] == 1;
      }
      if (!part) continue;
      if (!whole) return std::nullopt;
      for (size_t axis = first; axis < i; ++axis) {
        axes.push_back(static_cast<int64_t>(axis));
        extents.push_back(before[axis]);
      }
    }
    return Factor{to_.reshape(factor.values, std::move(extents)), std::move(axes)};
  }

  const Graph& graph_;
  const std::vector<bool> precomputable_;
  std::vector<int> uses_;
  std::vector<NodeId> copy_;    // for each node of graph_ that was copied: its number in to_
  std::map<NodeId, Sum> sums_;  // for each node of to_ that adds values to a product: the product and these values
  Builder to_;
};

}  // namespace

absl::StatusOr<Graph> with_factors_in_weights(const Graph& graph, const std::vector<std::string>& weights) {
  return FactorMover(graph, weights).run();
}

}  // namespace wl

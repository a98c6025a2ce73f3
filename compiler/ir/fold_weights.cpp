#include "compiler/ir/fold_weights.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/ir/build.h"

namespace wl {
namespace {

// For every node, whether it is computed from weights and constants alone, with at least one weight.
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
    } else if (std::all_of(node.operands.begin(), node.operands.end(), leaf)) {
      precomputable[i] =
          std::any_of(node.operands.begin(), node.operands.end(), [&](NodeId id) { return precomputable[id]; });
      fixed[i] = !precomputable[i];
    }
  }
  return precomputable;
}

// One factor for each position along some axes of a tensor.
struct Factor {
  NodeId values;              // node of the graph being built, whose shape is the extents of `axes`
  std::vector<int64_t> axes;  // axes in ascending order
};

constexpr int kDeepest = 16;  // limit of adds and views between a factor and its product

// A sum of a product and one value per slice of it.
struct Sum {
  NodeId product, values;
  NodeId shown = -1;  // node with the values broadcast to the product's shape
};

// Moves factors into weights while copying a graph.
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

  // Returns the value of `id` times the factor, computed with no more run-time operations than `id`; nullopt if that is
  // impossible.
  std::optional<NodeId> times(NodeId id, const Factor& factor, int depth = 0) {
    const Node& node = graph_.nodes[id];
    if (precomputable_[id]) {
      // The factor is applied before the broadcast, so that the value computed in advance is small.
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

  // Builds left + right or left - right. Where one operand is known before the run and the other is a product that lost
  // its factor, all such sums per slice are merged into one.
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

  // Multiplies the factor into an operand that is known before the run and has all axes of the factor.
  std::optional<NodeId> into_operand(const Node& node, const Factor& factor) {
    const auto einsum = parse_einsum(node.text);
    if (!einsum.ok()) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const NodeId weight = node.operands[side];
      if (!precomputable_[weight] || graph_.nodes[weight].dtype != node.dtype) continue;
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
      return to_.contract(operands[0], operands[1], node.text);
    }
    return std::nullopt;
  }

  // Returns `values`, whose axes correspond to `axes`, with its axes in ascending order.
  Factor sorted(NodeId values, std::vector<int64_t> axes) {
    std::vector<int64_t> order(axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return axes[a] < axes[b]; });
    if (!std::is_sorted(axes.begin(), axes.end())) values = to_.transpose(values, order);
    std::sort(axes.begin(), axes.end());
    return {values, std::move(axes)};
  }

  // Returns the factor as it applies before the reshape, if each of its axes becomes one or several whole axes there.
  std::optional<Factor> through_reshape(const Shape& before, const Shape& after, const Factor& factor) {
    std::vector<int64_t> axes;
    Shape extents;
    size_t i = 0, j = 0;
    while (i < before.size() || j < after.size()) {
      // Finds the shortest runs of axes of the two shapes that have equally many elements.
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
  std::vector<NodeId> copy_;    // the new number of every node copied so far
  std::map<NodeId, Sum> sums_;  // sums in the graph being built whose product lost a factor
  Builder to_;
};

// Cuts a graph between the values that are known before the run and those that are not.
class Cutter {
 public:
  Cutter(const Graph& graph, const std::vector<std::string>& weights)
      : graph_(graph),
        precomputable_(precomputable_values(graph, weights)),
        read_(graph.nodes.size()),
        largest_(graph.nodes.size(), -1),
        run_time_(graph.nodes.size()),
        cut_(graph.nodes.size()) {}

  absl::StatusOr<WeightFolding> run() {
    mark();
    for (NodeId input : graph_.inputs()) names_.insert(graph_.nodes[input].text);
    WeightFolding result;
    Builder to;
    std::vector<NodeId> copy(graph_.nodes.size(), -1);
    for (NodeId i = 0; i < static_cast<NodeId>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[i];
      if (cut_[i]) {
        WL_ASSIGN_OR_RETURN(FoldedWeight folded, fold(i));
        WL_ASSIGN_OR_RETURN(Fill fill, fill_of(folded, graph_.nodes[largest_[i]].fill));
        copy[i] = to.input(folded.name, node.dtype, node.shape, std::move(fill));
        result.weights.push_back(folded.name);
        result.folded.push_back(std::move(folded));
      } else if (run_time_[i] || (node.op == Op::input && !precomputable_[i])) {
        Node own = node;
        for (NodeId& operand : own.operands) operand = copy[operand];
        copy[i] = to.add_node(std::move(own));
        if (node.op == Op::input && precomputable_[i]) result.weights.push_back(node.text);
      }
    }
    for (const Output& output : graph_.outputs) to.output(output.name, copy[output.node]);
    WL_ASSIGN_OR_RETURN(result.graph, to.finish());
    return result;
  }

 private:
  void mark() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!precomputable_[i]) continue;
      if (node.op == Op::input) {
        read_[i] = graph_.bytes(static_cast<NodeId>(i));
        largest_[i] = static_cast<NodeId>(i);
      }
      for (NodeId operand : node.operands) {
        read_[i] += read_[operand];
        if (!precomputable_[operand]) continue;
        if (largest_[i] < 0 || graph_.bytes(largest_[operand]) > graph_.bytes(largest_[i]))
          largest_[i] = largest_[operand];
      }
    }
    for (const Output& output : graph_.outputs) run_time_[output.node] = true;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      run_time_[i] = run_time_[i] || (!precomputable_[i] && class_of(graph_.nodes[i].op) != OpClass::kLeaf);
      if (!run_time_[i]) continue;
      for (NodeId operand : graph_.nodes[i].operands) (pays(operand) ? cut_ : run_time_)[operand] = true;
    }
  }

  // Whether a value is worth storing: computing it takes work, and it is no larger than its operands.
  bool pays(NodeId id) const {
    const OpClass cls = class_of(graph_.nodes[id].op);
    return precomputable_[id] && cls != OpClass::kLeaf && cls != OpClass::kView && graph_.bytes(id) <= read_[id];
  }

  absl::StatusOr<FoldedWeight> fold(NodeId id) {
    std::map<NodeId, NodeId> number;  // numbers of nodes in the new graph, by number in the old one
    std::vector<NodeId> open = {id};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (!number.emplace(at, 0).second) continue;
      open.insert(open.end(), graph_.nodes[at].operands.begin(), graph_.nodes[at].operands.end());
    }
    FoldedWeight folded;
    for (auto& [old, now] : number) {
      now = static_cast<NodeId>(folded.from.nodes.size());
      folded.from.nodes.push_back(graph_.nodes[old]);
      for (NodeId& operand : folded.from.nodes.back().operands) operand = number.at(operand);
    }
    const std::string stem = cat(graph_.nodes[largest_[id]].text, ":folded");
    folded.name = stem;
    for (int copy = 2; !names_.insert(folded.name).second; ++copy) folded.name = cat(stem, copy);
    folded.from.outputs = {{folded.name, number.at(id)}};
    WL_RETURN_IF_ERROR(verify(folded.from));
    return folded;
  }

  // Returns the values themselves where all operands are available, otherwise numbers distributed as `otherwise` says.
  static absl::StatusOr<Fill> fill_of(const FoldedWeight& folded, Fill otherwise) {
    const Graph& from = folded.from;
    for (NodeId input : from.inputs()) {
      if (!from.nodes[input].fill.literal.empty()) continue;
      otherwise.literal.clear();
      return otherwise;
    }
    WL_ASSIGN_OR_RETURN(const std::string bytes, value_of(folded, generated_inputs(from, 0)));
    const Node& value = from.nodes[from.outputs[0].node];
    Fill fill;
    for (int64_t i = 0; i < elements(value.shape); ++i)
      fill.literal.push_back(load_element(value.dtype, bytes.data(), static_cast<uint64_t>(i)));
    return fill;
  }

  const Graph& graph_;
  const std::vector<bool> precomputable_;
  std::vector<int64_t> read_;         // for every precomputable value, the bytes of the weights it reads
  std::vector<NodeId> largest_;       // the largest weight that each precomputable value reads
  std::vector<bool> run_time_, cut_;  // values that every run computes; values that are stored
  std::set<std::string> names_;       // names of all inputs
};

}  // namespace

absl::StatusOr<std::string> value_of(const FoldedWeight& weight, const InputReader& operands) {
  constexpr int64_t kElements = 1 << 16;  // number of elements of a weight computed at a time
  const NodeId result = weight.from.outputs[0].node;
  const Node& node = weight.from.nodes[result];
  const int64_t count = elements(node.shape);
  std::string bytes(static_cast<size_t>(weight.from.bytes(result)), '\0');
  for (int64_t begin = 0; begin < count; begin += kElements) {
    Query query{result, std::vector<int64_t>(static_cast<size_t>(std::min(kElements, count - begin)))};
    std::iota(query.indices.begin(), query.indices.end(), begin);
    WL_ASSIGN_OR_RETURN(const auto values, evaluate(weight.from, operands, {query}));
    for (size_t i = 0; i < query.indices.size(); ++i)
      store_element(node.dtype, bytes.data(), static_cast<uint64_t>(query.indices[i]), values[0][i].value);
  }
  return bytes;
}

absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights) {
  if (weights.empty()) return WeightFolding{graph, weights, {}};
  WL_ASSIGN_OR_RETURN(const Graph moved, FactorMover(graph, weights).run());
  return Cutter(moved, weights).run();
}

}  // namespace wl

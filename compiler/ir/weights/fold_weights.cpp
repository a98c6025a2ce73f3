#include "compiler/ir/weights/fold_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/build.h"
#include "compiler/ir/evaluator.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/weights/factors.h"
#include "compiler/ir/weights/narrow.h"
#include "compiler/ir/weights/panels.h"

namespace wl {
namespace {

// A value that is at least kTooLarge times as large as the weights it is computed from is not stored in panels. Padding
// the taps of a transposed convolution makes its weights larger, but by less than this factor.
constexpr int64_t kTooLarge = 2;

// Cuts a graph into values that are computed once, before the first execution, and values that every execution
// computes.
class Cutter {
 public:
  Cutter(const Graph& graph, const std::vector<std::string>& weights, const std::vector<int64_t>& panels)
      : graph_(graph),
        panels_(panels),
        precomputable_(precomputable_values(graph, weights)),
        users_(graph.nodes.size()),
        read_(graph.nodes.size()),
        largest_(graph.nodes.size(), -1),
        run_time_(graph.nodes.size()),
        cut_(graph.nodes.size()),
        copy_(graph.nodes.size(), -1) {}

  absl::StatusOr<WeightFolding> run() {
    mark();
    for (NodeId input : graph_.inputs()) names_.insert(graph_.nodes[input].text);
    for (NodeId i = 0; i < static_cast<NodeId>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[i];
      if (cut_[i]) {
        WL_ASSIGN_OR_RETURN(copy_[i], read_folded(i, {}));
      } else if (const auto found = in_panels_.find(i); found != in_panels_.end()) {
        WL_ASSIGN_OR_RETURN(copy_[i], product_of_panels(node, found->second));
      } else if (run_time_[i] || (node.op == Op::input && !precomputable_[i])) {
        Node own = node;
        for (NodeId& operand : own.operands) operand = copy_[operand];
        copy_[i] = to_.add_node(std::move(own));
        if (node.op == Op::input && precomputable_[i]) result_.weights.push_back(node.text);
      }
    }
    for (const Output& output : graph_.outputs) to_.output(output.name, copy_[output.node]);
    WL_ASSIGN_OR_RETURN(result_.graph, to_.finish());
    return std::move(result_);
  }

 private:
  // How a product reads its operand `side` in panels. `stored` is the value that is stored in panels: the operand
  // itself, or a narrower weight that every execution widens to it.
  struct InPanels {
    int side;
    WeightPanels panels;
    NodeId stored;
  };

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
    for (NodeId i = 0; i < static_cast<NodeId>(graph_.nodes.size()); ++i)
      for (const NodeId operand : graph_.nodes[i].operands) users_[operand].push_back(i);
    for (const Output& output : graph_.outputs) {
      run_time_[output.node] = true;
      users_[output.node].push_back(-1);
    }
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      run_time_[i] = run_time_[i] || (!precomputable_[i] && class_of(graph_.nodes[i].op) != OpClass::kLeaf);
      if (!run_time_[i]) continue;
      const int side = side_in_panels(static_cast<NodeId>(i));
      for (int at = 0; at < static_cast<int>(graph_.nodes[i].operands.size()); ++at)
        if (at != side) read_in_run(graph_.nodes[i].operands[at]);
    }
  }

  void read_in_run(NodeId id) { (pays(id) ? cut_ : run_time_)[id] = true; }

  // Returns the number (0 or 1) of the operand that a product reads in panels, and adds the product to in_panels_.
  // Returns -1 if the product reads neither operand in panels. Every execution computes the product.
  int side_in_panels(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (panels_.empty() || node.op != Op::contract) return -1;
    const bool words =
        sum_of_dot(graph_.nodes[node.operands[0]].dtype, graph_.nodes[node.operands[1]].dtype).has_value();
    for (int side = 0; side < 2; ++side) {
      const NodeId weight = node.operands[side];
      if (!precomputable_[weight]) continue;
      const auto wide = words ? std::nullopt : widened(graph_, precomputable_, weight, [&](NodeId at) {
        return std::ranges::count_if(users_[at], [&](NodeId user) { return !is_folded(user); }) == 1;
      });
      if (!wide && graph_.bytes(weight) >= kTooLarge * read_[weight]) continue;
      std::optional<WeightPanels> panels = panels_of(graph_, node, side, panels_);
      if (!panels || !(wide || only_in(*panels, weight))) continue;
      if (wide) std::ranges::for_each(wide->beside, [&](NodeId value) { read_in_run(value); });
      in_panels_.emplace(id, InPanels{side, *std::move(panels), wide ? wide->narrow : weight});
      return side;
    }
    return -1;
  }

  // Whether every reader of the weight is a product that reads it in these panels, and each value that the weight is a
  // view of has no other reader. Readers that are folded themselves do not count.
  bool only_in(const WeightPanels& panels, NodeId weight) const {
    for (const NodeId user : users_[weight]) {
      if (is_folded(user)) continue;
      if (user < 0 || graph_.nodes[user].op != Op::contract) return false;
      const auto& operands = graph_.nodes[user].operands;
      const auto same = panels_of(graph_, graph_.nodes[user], operands[0] == weight ? 0 : 1, panels_);
      if (operands[0] == operands[1] || !same || same->split != panels.split || same->order != panels.order)
        return false;
    }
    for (NodeId at = weight; class_of(graph_.nodes[at].op) == OpClass::kView;) {
      at = graph_.nodes[at].operands[0];
      if (users_[at].size() > 1) return false;
    }
    return true;
  }

  // Whether no execution computes the value, because it is folded or everything computed from it is folded.
  bool is_folded(NodeId id) const {
    if (id < 0 || !precomputable_[id]) return false;
    return pays(id) || std::all_of(users_[id].begin(), users_[id].end(), [&](NodeId user) { return is_folded(user); });
  }

  // Whether a value is worth storing as a folded weight: it must be precomputable, neither a leaf nor a view, and no
  // larger than the weights it is computed from.
  bool pays(NodeId id) const {
    const OpClass cls = class_of(graph_.nodes[id].op);
    return precomputable_[id] && cls != OpClass::kLeaf && cls != OpClass::kView && graph_.bytes(id) <= read_[id];
  }

  absl::StatusOr<NodeId> product_of_panels(const Node& node, const InPanels& in) {
    const NodeId weight = node.operands[in.side];
    // Every product that reads the weight reads it in these panels, so the first one creates the panels and the others
    // use them.
    if (copy_[weight] < 0) {
      Node split = {.op = Op::reshape, .shape = in.panels.split};
      Node order = {.op = Op::transpose, .ints = in.panels.order};
      for (const int64_t axis : in.panels.order) order.shape.push_back(in.panels.split[axis]);
      WL_ASSIGN_OR_RETURN(copy_[weight], viewed(weight, in.stored, {std::move(split), std::move(order)}));
    }
    NodeId operands[2] = {copy_[node.operands[0]], copy_[node.operands[1]]};
    operands[1 - in.side] = to_.reshape(operands[1 - in.side], in.panels.other);
    return to_.reshape(to_.contract(operands[0], operands[1], in.panels.einsum, node.dtype, node.tf32), node.shape);
  }

  // Builds the value `id` with `views` applied to it: reshapes and transposes, in the order in which they apply. The
  // weight `stored`, from which the value is computed, is stored with the same views applied.
  absl::StatusOr<NodeId> viewed(NodeId id, NodeId stored, std::vector<Node> views) {
    const Node& node = graph_.nodes[id];
    if (id == stored) return read_folded(id, views);
    if (node.op == Op::constant) return to_.constant(node.value, node.dtype, views.back().shape);
    if (node.op == Op::reshape || node.op == Op::transpose) {
      views.insert(views.begin(), node);
      return viewed(node.operands[0], stored, std::move(views));
    }
    if (class_of(node.op) == OpClass::kElementwise) {
      Node own = node;
      own.shape = views.back().shape;
      for (NodeId& operand : own.operands) {
        WL_ASSIGN_OR_RETURN(operand, viewed(operand, stored, views));
      }
      return to_.add_node(std::move(own));
    }
    NodeId value = copy_[id];
    for (const Node& view : views)
      value = view.op == Op::reshape ? to_.reshape(value, view.shape) : to_.transpose(value, view.ints);
    return value;
  }

  // Adds a folded weight for value `id` with `views` applied, and returns the input that holds it in every execution.
  absl::StatusOr<NodeId> read_folded(NodeId id, const std::vector<Node>& views) {
    WL_ASSIGN_OR_RETURN(FoldedWeight folded, fold(id, views));
    WL_ASSIGN_OR_RETURN(Fill fill, fill_of(folded, graph_.nodes[largest_[id]].fill));
    const Node& value = folded.from.nodes[folded.from.outputs[0].node];
    const NodeId input = to_.input(folded.name, value.dtype, value.shape, std::move(fill));
    result_.weights.push_back(folded.name);
    result_.folded.push_back(std::move(folded));
    return input;
  }

  // Returns the folded weight that computes value `id` and applies `views` to it: the reshape and transpose that make
  // panels, or none.
  absl::StatusOr<FoldedWeight> fold(NodeId id, const std::vector<Node>& views) {
    std::map<NodeId, NodeId> number;  // for each node that the value is computed from: its number in the new graph
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
    NodeId result = number.at(id);
    for (Node view : views) {
      view.dtype = graph_.nodes[id].dtype;
      view.operands = {result};
      result = static_cast<NodeId>(folded.from.nodes.size());
      folded.from.nodes.push_back(std::move(view));
    }
    const std::string stem = cat(graph_.nodes[largest_[id]].text, views.empty() ? ":folded" : ":panels");
    folded.name = stem;
    for (int copy = 2; !names_.insert(folded.name).second; ++copy) folded.name = cat(stem, copy);
    folded.from.outputs = {{folded.name, result}};
    WL_RETURN_IF_ERROR(verify(folded.from));
    return folded;
  }

  // Returns the fill of a folded weight: its values if all its operands have literal fills, otherwise random numbers as
  // in `otherwise`.
  static absl::StatusOr<Fill> fill_of(const FoldedWeight& folded, Fill otherwise) {
    const Graph& from = folded.from;
    for (NodeId input : from.inputs()) {
      if (!from.nodes[input].fill.literal.empty()) continue;
      otherwise.literal.clear();
      return otherwise;
    }
    const Node& value = from.nodes[from.outputs[0].node];
    std::string bytes(static_cast<size_t>(from.bytes(from.outputs[0].node)), '\0');
    WL_RETURN_IF_ERROR(write_value(folded, generated_inputs(from, 0), bytes.data()));
    Fill fill;
    for (int64_t i = 0; i < elements(value.shape); ++i)
      fill.literal.push_back(load_element(value.dtype, bytes.data(), static_cast<uint64_t>(i)));
    return fill;
  }

  const Graph& graph_;
  const std::vector<int64_t>& panels_;  // the widths that panels may have, in columns
  const std::vector<bool> precomputable_;
  std::map<NodeId, InPanels> in_panels_;    // for each product that reads an operand in panels: which operand, and how
  std::vector<std::vector<NodeId>> users_;  // for each value: the nodes that read it; -1 stands for an output
  std::vector<int64_t> read_;               // for each precomputable value: bytes of the weights that it depends on
  std::vector<NodeId> largest_;             // for each precomputable value: the largest weight that it depends on
  // run_time_ marks values that every execution computes, and cut_ marks values that folded weights hold.
  std::vector<bool> run_time_, cut_;
  std::set<std::string> names_;  // the names of all inputs and folded weights
  Builder to_;                   // the graph that every execution computes
  std::vector<NodeId> copy_;     // for each node of graph_: the number of its copy in to_; -1: it has no copy
  WeightFolding result_;
};

}  // namespace

absl::Status write_value(const FoldedWeight& weight, const InputReader& operands, char* value) {
  constexpr int64_t kElements = 1 << 16;  // the number of elements of the weight that are computed at a time
  const NodeId result = weight.from.outputs[0].node;
  const Node& node = weight.from.nodes[result];
  const int64_t count = elements(node.shape);
  for (int64_t begin = 0; begin < count; begin += kElements) {
    Query query{result, std::vector<int64_t>(static_cast<size_t>(std::min(kElements, count - begin)))};
    std::iota(query.indices.begin(), query.indices.end(), begin);
    WL_ASSIGN_OR_RETURN(const auto values, evaluate(weight.from, operands, {query}, BeforeJumps::kRounded));
    for (size_t i = 0; i < query.indices.size(); ++i)
      if (size_of(node.dtype) == 8 && !is_float(node.dtype))
        std::memcpy(value + 8 * query.indices[i], &values[0][i].whole, 8);
      else
        store_element(node.dtype, value, static_cast<uint64_t>(query.indices[i]), values[0][i].value);
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightFolding> fold_weights(const Graph& graph, const std::vector<std::string>& weights,
                                           const std::vector<int64_t>& panels) {
  if (weights.empty()) return WeightFolding{graph, weights, {}};
  // Products of quantised integers are made before anything is folded: they need sums and other values that are
  // computed from weights, which can then be folded as well.
  WL_ASSIGN_OR_RETURN(const Graph bytes, with_byte_products(graph));
  WL_ASSIGN_OR_RETURN(const Graph moved, with_factors_in_weights(bytes, weights));
  return Cutter(moved, weights, panels).run();
}

}  // namespace wl

#include "compiler/domain/group.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "compiler/domain/group_order.h"
#include "compiler/ir/ranges.h"

namespace wl {

namespace {

// Builds the graph of a group (see extract()).
class Extraction {
 public:
  Extraction(const Graph& graph, const Group& group) : graph_(graph) {
    // An upper bound of the number of nodes in the result: each read or computed value may occur in two shapes.
    const size_t most = 2 * (group.reads.size() + group.ops.size());
    result_.nodes.reserve(most);
    now_.reserve(most);
  }

  void read(NodeId id, std::string name) {
    const Node& value = graph_.nodes[id];
    Node input{.op = Op::input, .dtype = value.dtype, .shape = without_units(value.shape)};
    input.text = std::move(name);
    if (value.op == Op::input && !is_float(value.dtype)) input.fill = value.fill;
    now_[id] = add(std::move(input));
  }

  void compute(NodeId id, const std::vector<NodeId>& operands) {
    Node node = graph_.nodes[id];
    node.operands = operands;
    const bool view = node.op == Op::reshape;
    for (NodeId& operand : node.operands) operand = view ? now_.at(operand) : whole(operand);
    // The operand of a reshape may be a value that the group reads. Such a value has lost its axes of extent 1, and so
    // may have the reshape's shape already; then the reshape is left out.
    const NodeId same = view && result_.nodes[node.operands[0]].shape == node.shape ? node.operands[0] : -1;
    now_[id] = same >= 0 ? same : add(std::move(node));
  }

  void store(NodeId id, std::string name) {
    NodeId now = now_.at(id);
    while (result_.nodes[now].op == Op::reshape && reshapes_units(result_, now)) now = result_.nodes[now].operands[0];
    result_.outputs.push_back({std::move(name), now});
  }

  Graph graph() {
    Graph graph = prune(std::move(result_));
    draw_integers(graph);
    return graph;
  }

 private:
  NodeId add(Node node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(result_.nodes.size()) - 1;
  }

  // Returns the node of the group's graph that has value `id` in its shape in the whole graph; adds a reshape to that
  // shape if needed.
  NodeId whole(NodeId id) {
    const NodeId now = now_.at(id);
    const Node& value = graph_.nodes[id];
    if (result_.nodes[now].shape == value.shape) return now;
    const auto known = whole_.find(id);
    if (known != whole_.end()) return known->second;
    return whole_[id] = add({.op = Op::reshape, .dtype = value.dtype, .shape = value.shape, .operands = {now}});
  }

  const Graph& graph_;
  Graph result_;
  absl::flat_hash_map<NodeId, NodeId> now_, whole_;
};

}  // namespace

Graph extract(const Graph& graph, const Group& group) {
  Extraction extraction(graph, group);
  for (size_t i = 0; i < group.reads.size(); ++i) extraction.read(group.reads[i], cat("i", i));
  const GroupOrder order(graph, group);
  order.walk(group.stores, [&](NodeId id) { extraction.compute(id, order.operands(id)); });
  for (size_t i = 0; i < group.stores.size(); ++i) extraction.store(group.stores[i], cat("o", i));
  return extraction.graph();
}

int64_t bytes_moved(const Graph& graph, const Group& group) {
  // For each value, an upper bound of the number of its elements that are read.
  absl::flat_hash_map<NodeId, int64_t> wanted;
  const auto want = [&](NodeId value, int64_t count) {
    int64_t& known = wanted[value];
    known = std::min(known + count, elements(graph.nodes[value].shape));
  };
  int64_t bytes = 0;
  for (NodeId store : group.stores) {
    want(store, elements(graph.nodes[store].shape));
    bytes += graph.bytes(store);
  }
  for (auto op = group.ops.rbegin(); op != group.ops.rend(); ++op) {
    const Node& node = graph.nodes[*op];
    const OpClass cls = class_of(node.op);
    const bool all = cls == OpClass::kReduce || cls == OpClass::kContract;
    for (NodeId operand : node.operands) want(operand, all ? elements(graph.nodes[operand].shape) : wanted[*op]);
  }
  for (NodeId read : group.reads) bytes += wanted[read] * size_of(graph.nodes[read].dtype);
  return bytes;
}

int64_t bytes_moved(const Graph& group) {
  Group whole;
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id)
    (group.nodes[id].op == Op::input ? whole.reads : whole.ops).push_back(id);
  for (const Output& output : group.outputs) whole.stores.push_back(output.node);
  return bytes_moved(group, whole);
}

double contraction_flops(const Graph& group, const Node& contract) {
  const absl::StatusOr<Einsum> einsum = parse_einsum(contract.text);
  WL_CHECK(einsum.ok(), contract.text);
  double flops = 2 * static_cast<double>(elements(contract.shape));
  for (size_t i = 0; i < einsum->a.size(); ++i)
    if (einsum->out.find(einsum->a[i]) == std::string::npos)
      flops *= static_cast<double>(group.nodes[contract.operands[0]].shape[i]);
  return flops;
}

double flops_of(const Graph& group) {
  double flops = 0;
  for (const Node& node : group.nodes) {
    const OpClass cls = class_of(node.op);
    if (cls == OpClass::kElementwise) flops += static_cast<double>(elements(node.shape));
    if (cls == OpClass::kReduce) flops += static_cast<double>(elements(group.nodes[node.operands[0]].shape));
    if (cls == OpClass::kContract) flops += contraction_flops(group, node);
  }
  return flops;
}

}  // namespace wl

#include "compiler/plan/cover.h"

#include <algorithm>
#include <map>

#include "compiler/plan/cover_order.h"
#include "compiler/plan/cover_values.h"

namespace wl {

Graph extract(const Graph& graph, const Group& group) {
  Graph result;
  std::map<NodeId, NodeId> now;
  for (size_t i = 0; i < group.reads.size(); ++i) {
    const Node& value = graph.nodes[group.reads[i]];
    Node input;
    input.op = Op::input;
    input.dtype = value.dtype;
    input.shape = value.shape;
    input.text = cat("i", i);
    if (value.op == Op::input && !is_float(value.dtype)) input.fill = value.fill;
    now[group.reads[i]] = static_cast<NodeId>(result.nodes.size());
    result.nodes.push_back(std::move(input));
  }
  const GroupOrder order(graph, group);
  order.walk(group.stores, [&](NodeId id) {
    Node node = graph.nodes[id];
    node.operands = order.operands(id);
    for (NodeId& operand : node.operands) operand = now.at(operand);
    now[id] = static_cast<NodeId>(result.nodes.size());
    result.nodes.push_back(std::move(node));
  });
  for (size_t i = 0; i < group.stores.size(); ++i) result.outputs.push_back({cat("o", i), now.at(group.stores[i])});
  return result;
}

int64_t bytes_moved(const Graph& group) {
  int64_t bytes = 0;
  for (NodeId input : group.inputs()) bytes += group.bytes(input);
  for (const Output& output : group.outputs) bytes += group.bytes(output.node);
  return bytes;
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

absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine) {
  WL_ASSIGN_OR_RETURN(const CoverValues values, CoverValues::make(graph, machine));
  std::vector<Group> groups = values.copies();
  std::vector<std::vector<NodeId>> own(graph.nodes.size());
  for (NodeId anchor : values.anchors()) own[anchor].push_back(anchor);
  for (NodeId anchor : values.anchors()) {  // operands first: a cast of a cast goes along
    if (graph.nodes[anchor].op != Op::cast || values.is_output(anchor) || values.readers(anchor).size() != 1) continue;
    std::vector<NodeId>& into = own[values.readers(anchor)[0]];
    std::vector<NodeId> both = own[anchor];
    both.insert(both.end(), into.begin(), into.end());
    std::sort(both.begin(), both.end());
    if (!analyze(extract(graph, values.group(both)), machine).ok()) continue;
    into = std::move(both);
    own[anchor].clear();
  }
  for (const std::vector<NodeId>& anchors : own)
    if (!anchors.empty()) groups.push_back(values.group(anchors));
  return ordered(graph, std::move(groups));
}

}  // namespace wl

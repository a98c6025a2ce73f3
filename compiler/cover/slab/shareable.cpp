#include "compiler/cover/slab/shareable.h"

#include "compiler/domain/axes.h"

namespace wl {
namespace {

// Gives an input that is only read through one reshape the shape of that reshape. Blocks can then divide its
// dimensions, for example the heads of a projection to q, k and v.
void take_inputs_as_read(Graph& group) {
  std::vector<NodeId> view(group.nodes.size(), -1);  // for each input: the first node that reads it; -1: no node does
  std::vector<char> otherwise(group.nodes.size(), 0);
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id)
    for (NodeId operand : group.nodes[id].operands) {
      if (group.nodes[operand].op != Op::input) continue;
      if (view[operand] < 0) view[operand] = id;
      if (group.nodes[id].op != Op::reshape || group.nodes[id].shape != group.nodes[view[operand]].shape)
        otherwise[operand] = 1;
    }
  for (const Output& output : group.outputs) otherwise[output.node] = 1;
  for (size_t id = 0; id < group.nodes.size(); ++id)
    if (view[id] >= 0 && otherwise[id] == 0) group.nodes[id].shape = group.nodes[view[id]].shape;
}

}  // namespace

Shareable shareable(const Graph& group) {
  Shareable made;
  Graph& out = made.graph;
  std::vector<NodeId> now(group.nodes.size(), -1);
  std::vector<char> read(group.nodes.size(), 0);
  const auto add = [&](Node node, NodeId was) {
    out.nodes.push_back(std::move(node));
    made.was.push_back(was);
    return static_cast<NodeId>(out.nodes.size()) - 1;
  };
  for (size_t id = 0; id < group.nodes.size(); ++id) {
    Node node = group.nodes[id];
    for (NodeId& operand : node.operands) {
      read[operand] = 1;
      operand = group.nodes[operand].op == Op::constant ? add(group.nodes[operand], operand) : now[operand];
    }
    now[id] = add(std::move(node), static_cast<NodeId>(id));
  }
  for (const Output& output : group.outputs) {
    const Node& node = group.nodes[output.node];
    NodeId stored = now[output.node];
    if (read[output.node] != 0 && !is_leaf(node))
      stored = add({.op = Op::reshape, .dtype = node.dtype, .shape = node.shape, .operands = {stored}}, output.node);
    out.outputs.push_back({output.name, stored});
  }
  take_inputs_as_read(out);
  return made;
}

}  // namespace wl

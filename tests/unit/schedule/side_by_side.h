// Combines two random graphs into one, for tests of kernels that run unconnected parts.
#pragma once

#include <string>

#include "compiler/ir/graph.h"
#include "tests/unit/ir/random_graph.h"

namespace wl::testing {

// Returns a graph of two unconnected parts. For every other seed, the parts share an input if both have one of equal
// type and fill.
inline Graph side_by_side(uint64_t seed) {
  const RandomGraphOptions options = {.nodes = 6, .largest = 400, .f32_only = true, .zero_extents = false};
  Graph both = random_graph(2 * seed, options);
  for (Node& node : both.nodes)
    if (node.op == Op::input) node.text += "_a";
  for (Output& output : both.outputs) output.name += "_a";
  const Graph second = random_graph(2 * seed + 1, options);
  const std::vector<NodeId> known = both.inputs();
  std::vector<NodeId> now;
  for (Node node : second.nodes) {
    for (NodeId& operand : node.operands) operand = now[operand];
    if (node.op == Op::input) {
      NodeId same = -1;
      for (NodeId input : known) {
        const Node& other = both.nodes[input];
        if (seed % 2 == 0 && other.dtype == node.dtype && other.shape == node.shape && other.fill == node.fill)
          same = input;
      }
      if (same >= 0) {
        now.push_back(same);
        continue;
      }
      node.text += "_b";
    }
    now.push_back(static_cast<NodeId>(both.nodes.size()));
    both.nodes.push_back(std::move(node));
  }
  for (const Output& output : second.outputs) both.outputs.push_back({output.name + "_b", now[output.node]});
  return both;
}

}  // namespace wl::testing

// Random small graphs with every class of op, for tests of anything that takes a Graph. They are always verified, and
// the same seed gives the same graph. Chains of views and special constants are frequent, so that rewrite rules apply.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace wl {

struct RandomGraphOptions {
  int nodes = 14;            // number of attempts to add a node, which is about the number of nodes
  int64_t largest = 200;     // largest number of elements of any node
  bool f32_only = false;     // all floats are f32; integers and booleans still occur
  bool zero_extents = true;  // whether empty tensors occur
};
Graph random_graph(uint64_t seed, const RandomGraphOptions& options = {});

// Computes all elements of all nodes, node by node, whereas the oracle computes only the requested elements; returns
// those of the outputs. `rounded`: as in a plain kernel, each node is rounded to its dtype, and sums of f32, f16 and
// bf16 are accumulated in float; otherwise all arithmetic is in double.
std::vector<std::vector<double>> eager_outputs(const Graph& graph, uint64_t seed, bool rounded);

}  // namespace wl

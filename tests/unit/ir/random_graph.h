// Random small graphs of every class of op, for tests of anything that takes a Graph. Always verified; the same seed
// gives the same graph. Favours chains of views and special constants, so that rewrite rules find something.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace wl {

struct RandomGraphOptions {
  int nodes = 14;            // attempts; about as many nodes come out
  int64_t largest = 200;     // elements of any node
  bool f32_only = false;     // floats are f32; indices and conditions still occur
  bool zero_extents = true;  // now and then an empty tensor
};
Graph random_graph(uint64_t seed, const RandomGraphOptions& options = {});

// The graph's outputs computed eagerly, node by node, every element, without the lazy oracle. `rounded`: as a plain
// kernel would, each node rounded to its dtype and sums of f32, f16 and bf16 taken in float; otherwise in double.
std::vector<std::vector<double>> eager_outputs(const Graph& graph, uint64_t seed, bool rounded);

}  // namespace wl

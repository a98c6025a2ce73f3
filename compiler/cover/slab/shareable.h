// A group, changed so that its work can be divided among blocks (stitching.h).
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// The graph of a group with three changes: every reader of a constant has its own copy, so that the copies can be cut
// in different ways; an output that other nodes read becomes a copy of the value that they read, so that output and
// value can be cut differently; and inputs that are only read through one reshape have the shape of that reshape.
struct Shareable {
  Graph graph;
  std::vector<NodeId> was;  // of each node of `graph`: the node of the group that it was made from
};
Shareable shareable(const Graph& group);

}  // namespace wl

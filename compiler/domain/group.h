// A group: ops of a graph that share a kernel, and the values that the kernel stores. extract() returns a group as a
// Graph of its own, and all later steps (domain, schedule, lowering, checking, keys) see only that Graph.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

struct Group {
  std::vector<NodeId> ops;  // nodes of the whole graph that the group computes, never inputs; ascending
  // Values of the whole graph that the group reads: inputs, or values that other groups store. They are in the order in
  // which a walk from the stores to the operands first reaches them, so that equal groups at different places of a
  // graph have the same order.
  std::vector<NodeId> reads;
  std::vector<NodeId> stores;  // values that the group writes, in the same order in equal groups
  bool operator==(const Group&) const = default;
};

// Returns the group as a graph of its own. Reads become inputs i0, i1, ... in the order of group.reads, and stores
// become outputs o0, o1, ... in the order of group.stores. Float inputs get the fill normal(0,1); integer inputs keep
// their fill. Equal groups must have equal texts, so operands of commutative ops are put in an order that follows from
// the group's structure, and reads and stores lose their axes of extent 1, which does not change the buffers.
Graph extract(const Graph& graph, const Group& group);

// Returns the least number of bytes that a kernel of the group must move: each output once and each input once. If an
// input is only read through slices or gathers, only the elements that they read count.
int64_t bytes_moved(const Graph& group);
// Returns bytes_moved() of a group that has not been extracted from the whole graph.
int64_t bytes_moved(const Graph& graph, const Group& group);
// Returns the operations of a contraction: 2 per multiply-add.
double contraction_flops(const Graph& group, const Node& contract);
// Returns the operations of a group: 2 per multiply-add of a contraction, 1 per elementwise or reduced value.
double flops_of(const Graph& group);

}  // namespace wl

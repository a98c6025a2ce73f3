// A group: ops of a graph that share a kernel, and the values that the kernel stores. extract() makes a Graph of its
// own of a group, and everything downstream (domain, schedule, lowering, checking, keys) sees only that Graph.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

struct Group {
  std::vector<NodeId> ops;  // nodes of the whole graph computed here: non-leaves, constants, iotas; ascending
  // Values of the whole graph that the group reads: inputs, or stores of other groups. They are in the order in which a
  // walk from the stores to the operands meets them, so that equal groups at different places of a graph read in the
  // same order.
  std::vector<NodeId> reads;
  std::vector<NodeId> stores;  // values that the group writes; equal groups have them in the same order
  bool operator==(const Group&) const = default;
};

// Returns the group as a graph of its own. Reads become inputs i0, i1, ... in the order of group.reads, and stores
// become outputs o0, o1, ... in the order of group.stores; float inputs are filled with normal(0,1) values, integer
// inputs keep their fills. So that equal groups have equal text, operands of commutative ops are put in an order that
// follows from the group's structure, and extents of 1 of reads and stores are left out; this does not change the
// buffers.
Graph extract(const Graph& graph, const Group& group);

// Returns the least number of bytes that a kernel of the group must move: each output once and each input once. Of an
// input that is sliced or gathered from, no more elements count than are taken.
int64_t bytes_moved(const Graph& group);
int64_t bytes_moved(const Graph& graph, const Group& group);         // for a group of `graph`
double contraction_flops(const Graph& group, const Node& contract);  // 2 per multiply-add
double flops_of(const Graph& group);  // 2 per multiply-add of a contraction, 1 per elementwise or reduced element

}  // namespace wl

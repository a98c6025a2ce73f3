// A group: ops of a graph that share a kernel, and the values that it stores. It becomes a Graph of its own (extract),
// and everything downstream - domain, schedule, lowering, checking, keys - sees only that Graph.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

struct Group {
  std::vector<NodeId> ops;  // non-leaf nodes (and constants, iotas) of the whole graph computed here, ascending
  // Values of the whole graph read: inputs or stores of other groups, in the order in which a walk from the stores
  // meets them, so that equal groups read in the same order wherever they stand.
  std::vector<NodeId> reads;
  std::vector<NodeId> stores;  // values written, in an order that is the same for equal groups too
  bool operator==(const Group&) const = default;
};

// The group as a standalone graph: reads become inputs i0.. in the order of group.reads, stores outputs o0.. in the
// order of group.stores; float fills are normal(0,1), integer fills are kept. Operands of commutative ops are put in an
// order that the group's structure gives, and extents of 1 of reads and stores are left out, so that equal groups have
// equal text; the buffers are the same.
Graph extract(const Graph& graph, const Group& group);

// Bytes that a kernel of the group moves at least: outputs, and inputs once; of an input that is cut or looked up in,
// no more than there is of what is taken.
int64_t bytes_moved(const Graph& group);
int64_t bytes_moved(const Graph& graph, const Group& group);         // of a group of `graph`
double contraction_flops(const Graph& group, const Node& contract);  // 2 per multiply-add
double flops_of(const Graph& group);  // 2 per multiply-add of a contraction, 1 per elementwise or reduced element

}  // namespace wl

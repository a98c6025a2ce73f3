// The cover: which ops share a kernel. A group is a set of ops and the values it stores; it becomes a Graph of its own
// (extract), and everything downstream - domain, space, lowering, checking, keys - sees only that Graph. A cover
// computes every output of the whole graph; groups are listed in an order in which their inputs exist.
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

struct Cover {
  std::vector<Group> groups;
};

// One kernel per op: views, constants and casts that only feed one op go with it; a view that nothing can absorb is a
// kernel of its own. The default that every report compares with.
absl::StatusOr<Cover> cover_one_per_op(const Graph& graph, const Machine& machine);

struct CoverMemo;  // cover_values.h
struct GreedyOptions {
  bool contractions_alone = false;  // nothing is merged with one: as if libraries were called for them
  CoverMemo* memo = nullptr;        // of earlier covers on the same machine
};
// Sound greedy fusion: producers and consumers are merged, best saving of bytes first, while the group stays convex and
// analyze() accepts it.
absl::StatusOr<Cover> cover_greedy(const Graph& graph, const Machine& machine, const GreedyOptions& options = {});

// The groups of cover_greedy, neighbours of which are stitched (stitch.h) where what blocks then read again costs less
// than what went through memory.
absl::StatusOr<Cover> cover_stitched(const Graph& graph, const Machine& machine, const Cover& greedy);

// The group as a standalone graph: reads become inputs i0.. in the order of group.reads, stores outputs o0.. in the
// order of group.stores; float fills are normal(0,1), integer fills are kept. Operands of commutative ops are put in an
// order that the group's structure gives, and extents of 1 of reads and stores are left out, so that equal groups have
// equal text; the buffers are the same.
Graph extract(const Graph& graph, const Group& group);

int64_t bytes_moved(const Graph& group);                             // inputs read once + outputs written once
double contraction_flops(const Graph& group, const Node& contract);  // 2 per multiply-add
double flops_of(const Graph& group);  // 2 per multiply-add of a contraction, 1 per elementwise or reduced element

}  // namespace wl

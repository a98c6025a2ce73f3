// One block's share of a whole group. Some dimensions of its first output are cut into equal lengths; what every other
// value then needs of each of its own dimensions follows backwards through the ops. All blocks do the same work on
// values of the same shapes, moved by whole lengths: the slab is a graph of its own.
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Slab {
  // A dimension of a value: block number along `axis` times `length` is its first element; axis -1: all of it.
  struct Cut {
    int axis = -1;
    int64_t length = 0;
    bool operator==(const Cut&) const = default;
  };
  std::vector<int64_t> counts;         // blocks along each axis, outermost first
  Graph graph;                         // of one block; inputs are whole, slices at their origin follow
  std::vector<NodeId> origin;          // of the slab's nodes: the group's, -1 for slices of inputs
  std::vector<std::vector<Cut>> cuts;  // of the group's nodes
  std::vector<char> needed;            // which of them
  // How far a step of the block number along each axis moves in the row-major buffer of a node of the group.
  std::vector<int64_t> shift(const Graph& group, NodeId node) const;
};

// Lengths of output 0, one for each dimension (its extent: not cut). InvalidArgument naming the op when a cut does not
// carry through a view, a reduction or contraction would be made by several blocks, or an output by several.
absl::StatusOr<Slab> slab_of(const Graph& group, const std::vector<int64_t>& lengths);

// For every dimension of output 0, the least length to which slab_of() cuts it alone; its extent where there is none.
std::vector<int64_t> least_lengths(const Graph& group);

}  // namespace wl

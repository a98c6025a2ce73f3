// A slab is the share of a group that one block computes. Some dimensions of the group's first output are cut into
// parts of equal length. Which parts of all other values a block needs follows backwards through the ops. All blocks do
// the same work on values of equal shapes, whose offsets are multiples of the parts' lengths, so the slab is a graph of
// its own.
#pragma once

#include <vector>

#include "compiler/cover/slab/carried_axis.h"

namespace wl {

struct Slab {
  // Which part of one dimension of a value a block takes: `length` elements that begin at `length` times the block's
  // number along `axis`. Axis -1: the whole dimension.
  struct Cut {
    int axis = -1;
    int64_t length = 0;
    bool operator==(const Cut&) const = default;
  };
  std::vector<int64_t> counts;  // number of blocks along each axis of the grid, outermost axis first
  // Number of iterations of full length over the carried axis; 0: there is no such axis. Cut::axis has the value
  // counts.size() for this axis.
  int64_t turns = 0;
  // The graph of block 0. Inputs are whole; a cut input is followed by a slice. A cut iota becomes an input that holds
  // the block's part of its numbers.
  Graph graph;
  // For each node of `graph`: the node of the group from which it is made; -1: it is a slice of an input.
  std::vector<NodeId> origin;
  std::vector<std::vector<Cut>> cuts;  // of each node of the group: how its dimensions are cut
  std::vector<char> needed;            // of each node of the group: whether a block needs it
  // Returns, for each axis of blocks, by how many elements a block's part of the group's `node` moves in the node's
  // row-major buffer when the block's number along the axis grows by 1. With a carried axis, a last entry says how far
  // the part moves per iteration.
  std::vector<int64_t> shift(const Graph& group, NodeId node) const;
};

// Makes the slab of a block. `lengths`: for each dimension of output 0, the length of a block's part; the dimension's
// extent means that it is not cut. With `carried`, the slab is that of one iteration over `turn` elements of this
// reduced axis; Slab::turns counts the iterations of this length. InvalidArgument, naming the op: a cut cannot be
// carried through a view, different parts of one value are needed, or several blocks would compute the same reduction,
// contraction, lookup or output.
absl::StatusOr<Slab> slab_of(const Graph& group, const std::vector<int64_t>& lengths,
                             const CarriedAxis* carried = nullptr, int64_t turn = 0);

// Returns, for every dimension of output 0, the smallest length to which slab_of() can cut it while the others are
// whole; for a dimension that cannot be cut, its extent.
std::vector<int64_t> least_lengths(const Graph& group);

}  // namespace wl

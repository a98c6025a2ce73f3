// A slab is the share of a group that one block computes. Some dimensions of the group's first output are cut into
// equal lengths; which part of every other value a block then needs follows backwards through the ops. All blocks do
// the same work on values of equal shapes, at offsets that are multiples of the lengths of the parts, so the slab is a
// graph of its own.
#pragma once

#include <vector>

#include "compiler/cover/carried_axis.h"

namespace wl {

struct Slab {
  // The part of one dimension of a value that a block takes: `length` elements, from the block's number along `axis`
  // times `length`. Axis -1: the whole dimension.
  struct Cut {
    int axis = -1;
    int64_t length = 0;
    bool operator==(const Cut&) const = default;
  };
  std::vector<int64_t> counts;  // blocks along each axis, outermost first
  int64_t turns = 0;            // whole turns along a carried axis, whose number as Cut::axis is counts.size(); 0: none
  // The graph of block 0. Inputs are whole, and are sliced where they are cut. An iota that is cut is replaced by an
  // input that holds the block's part of its numbers.
  Graph graph;
  std::vector<NodeId> origin;          // by node of `graph`: the group's node, -1 for slices of inputs
  std::vector<std::vector<Cut>> cuts;  // by node of the group
  std::vector<char> needed;            // by node of the group: whether a block needs it
  // By how many elements of the row-major buffer of the group's `node` a block's part moves per step of the block's
  // number, for each axis; where there are turns, one more entry says how far it moves per turn.
  std::vector<int64_t> shift(const Graph& group, NodeId node) const;
};

// Makes the slab of a block. `lengths`: for each dimension of output 0, the length of a block's part; the dimension's
// extent means that it is not cut. With `carried`, the slab is that of one turn: one iteration of the block's loop over
// that reduced axis, on `turn` elements. Slab::turns counts the whole turns.
// InvalidArgument, naming the op, when a cut cannot be carried through a view, when different parts of one value are
// needed, or when several blocks would compute the same reduction, contraction, lookup or output.
absl::StatusOr<Slab> slab_of(const Graph& group, const std::vector<int64_t>& lengths,
                             const CarriedAxis* carried = nullptr, int64_t turn = 0);

// For every dimension of output 0, the smallest length to which slab_of() can cut it while the others are whole; its
// extent if it cannot be cut.
std::vector<int64_t> least_lengths(const Graph& group);

}  // namespace wl

// The share of a group that one block computes. Some dimensions of the group's first output are cut into equal lengths;
// which part of every other value a block then needs follows backwards through the ops. All blocks do the same work on
// values of the same shapes at offsets that are multiples of these lengths, so that the slab is a graph of its own.
#pragma once

#include <vector>

#include "compiler/cover/carried_axis.h"

namespace wl {

struct Slab {
  // The part of one dimension of a value: its first element is the block number along `axis` times `length`. Axis -1:
  // the whole dimension.
  struct Cut {
    int axis = -1;
    int64_t length = 0;
    bool operator==(const Cut&) const = default;
  };
  std::vector<int64_t> counts;  // blocks along each axis, outermost first
  int64_t turns = 0;            // parts of the carried axis, whose number is behind those of the others; 0: none
  Graph
      graph;  // of block 0; inputs are whole and are sliced; what is left of an iota that is cut is an input of its own
  std::vector<NodeId> origin;          // of each slab node: the group's node, -1 for slices of inputs
  std::vector<std::vector<Cut>> cuts;  // by node of the group
  std::vector<char> needed;            // whether a block needs the node, by node of the group
  // The offset in the row-major buffer of a group's node that one step of the block number makes, for each axis; then
  // what a step along the carried axis makes.
  std::vector<int64_t> shift(const Graph& group, NodeId node) const;
};

// `lengths` are of output 0's dimensions; a dimension's extent means that it is not cut. InvalidArgument, naming the
// op, when a cut cannot be carried through a view, or when several blocks would compute the same reduction, contraction
// or output.
// With `carried` the slab is of one turn: of `turn` elements along that axis. Slab::turns counts the whole ones.
absl::StatusOr<Slab> slab_of(const Graph& group, const std::vector<int64_t>& lengths,
                             const CarriedAxis* carried = nullptr, int64_t turn = 0);

// For every dimension of output 0, the smallest length to which slab_of() can cut it alone; its extent if there is
// none.
std::vector<int64_t> least_lengths(const Graph& group);

}  // namespace wl

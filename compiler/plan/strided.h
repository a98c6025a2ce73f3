// Where the elements of a view of stored tensors lie: an offset and, for every axis of the view, a mixed-radix list of
// terms (extent and how far a step moves), outermost first; extent 1 is the empty list. A *guard* is a second address
// beside the one in memory: the coordinate along an axis that was padded, which must lie within the axis. So pads are
// arithmetic too, and slice, window, transpose, broadcast and reshape treat address and guards alike, as long as their
// cuts nest. A pad or concat reads by *pieces*: the first whose guards hold (note in docs/decisions/0003).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Term {
  int64_t extent = 1;
  int64_t stride = 0;
  std::vector<int64_t> guards = {};  // how far a step moves each guard of the Strided
  bool operator==(const Term&) const = default;
};

struct Strided {
  struct Guard {  // holds where 0 <= offset + what the terms add < extent
    int64_t offset = 0, extent = 0;
    bool operator==(const Guard&) const = default;
  };
  int64_t offset = 0;
  std::vector<std::vector<Term>> axes;
  std::vector<Guard> guards = {};
};

// The row-major buffer of a tensor, in elements.
Strided strided_of(const Shape& shape);
// The value of an iota node.
Strided strided_iota(const Node& iota);
// A splat: nothing moves.
Strided strided_splat(const Shape& shape);
// The view's elements, given its operand's; not for concat. InvalidArgument (naming the node) when they are not
// strided: pads, windows or strided slices of an axis that is itself several pieces of memory, and reshapes whose cuts
// do not nest.
absl::StatusOr<Strided> apply_view(const Graph& graph, NodeId view, Strided operand);
// The elements of a tensor of `extent` along `axis` as part of a longer axis, from `low` on, guarded.
// False when the axis is several pieces of memory.
bool place_within(Strided& strided, size_t axis, int64_t extent, int64_t low, int64_t longer);
// Neighbouring terms that together are one stride become one term.
void merge_terms(std::vector<Term>& terms);

// Part of what a view reads.
struct StridedPiece {
  NodeId leaf = -1;  // input, iota or constant node; -1: `value`
  double value = 0;  // of a constant
  bool constant = false;
  Strided at;
};
// What `id`, a leaf seen through views, reads: the first piece whose guards hold; the last has none. InvalidArgument
// (naming the node) when a view is not strided, or joins a value that is computed.
absl::StatusOr<std::vector<StridedPiece>> pieces_of(const Graph& graph, NodeId id);

}  // namespace wl

// The addresses of the elements of a view of a stored tensor: an offset and, for every axis of the view, a mixed-radix
// list of terms (an extent, and the change of the address in a step), outermost first; an axis of extent 1 is the empty
// list. A *guard* is a second number beside the address: the coordinate along an axis that was padded, which must lie
// within the axis before padding. So pads are address arithmetic as well. Slice, window, transpose, broadcast and
// reshape treat the address and the guards alike, as long as their cuts nest. A pad or concat is a list of *pieces*:
// each element is read from the first piece whose guards hold (docs/design/kernels.md#guarded-access).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

struct Term {
  int64_t extent = 1;
  int64_t stride = 0;
  std::vector<int64_t> guards = {};  // for each of Strided::guards: the change of its coordinate in a step of the term
  bool operator==(const Term&) const = default;
};

struct Strided {
  struct Guard {  // holds where 0 <= coordinate < extent; terms change the coordinate from `offset` on
    int64_t offset = 0, extent = 0;
    bool operator==(const Guard&) const = default;
  };
  int64_t offset = 0;
  std::vector<std::vector<Term>> axes;
  std::vector<Guard> guards = {};
};

// Returns the addresses of a tensor in a row-major buffer, in elements.
Strided strided_of(const Shape& shape);
// Returns the values of an iota node, in the form of addresses.
Strided strided_iota(const Node& iota);
// Returns the addresses of a splat constant, which are all 0.
Strided strided_splat(const Shape& shape);
// Returns the addresses of a view's elements, given those of its operand; the view must not be a concat. The error is
// InvalidArgument and names the node if the result is not strided: for a pad, a window or a strided slice of an axis
// that has several terms, and for a reshape whose cuts do not nest.
absl::StatusOr<Strided> apply_view(const Graph& graph, NodeId view, Strided operand);
// Makes the tensor a part of one that is longer along `axis`: its `extent` elements begin at element `low` of `longer`
// elements. A new guard excludes the other elements. Returns false if the axis has several terms.
bool place_within(Strided& strided, size_t axis, int64_t extent, int64_t low, int64_t longer);
// Merges neighbouring terms into one term wherever one stride describes both.
void merge_terms(std::vector<Term>& terms);

// A piece of a view: the elements of the view that are read from one leaf.
struct StridedPiece {
  NodeId leaf = -1;  // the input, iota or constant node that is read; -1: a pad's constant, `value`
  double value = 0;  // the value of the piece if it is a constant
  bool constant = false;
  Strided at;
};
// Returns the pieces of `id`, which must be a leaf or a view of leaves. Each element is read from the first piece whose
// guards hold; the last piece has no guards. The error is InvalidArgument and names the node if a view is not strided,
// or if a computed value is padded or joined with others.
absl::StatusOr<std::vector<StridedPiece>> pieces_of(const Graph& graph, NodeId id);

}  // namespace wl

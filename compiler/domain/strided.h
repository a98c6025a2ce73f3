// The addresses of the elements of a view of a stored tensor: an offset and, for every axis of the view, a mixed-radix
// list of terms (an extent, and how far a step moves the address), outermost first; an axis of extent 1 is the empty
// list. A *guard* is a second number beside the address: the coordinate along an axis that was padded, which must lie
// within the axis before padding. So a pad is address arithmetic as well, and slice, window, transpose, broadcast and
// reshape treat the address and the guards alike, as long as their cuts nest. A pad or concat is a list of *pieces*:
// each element is read from the first piece whose guards hold (note in docs/design/kernels.md#guarded-access).
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
  struct Guard {  // holds where 0 <= offset + the sum of the steps of all terms < extent
    int64_t offset = 0, extent = 0;
    bool operator==(const Guard&) const = default;
  };
  int64_t offset = 0;
  std::vector<std::vector<Term>> axes;
  std::vector<Guard> guards = {};
};

// Returns the addresses of a tensor in a row-major buffer, in elements.
Strided strided_of(const Shape& shape);
// Returns the values of an iota node, as addresses.
Strided strided_iota(const Node& iota);
// Returns the addresses of a splat constant: all are 0.
Strided strided_splat(const Shape& shape);
// Returns the addresses of a view's elements, given those of its operand; not for a concat. The error is
// InvalidArgument and names the node if the result is not strided: for a pad, a window or a strided slice of an axis
// that is itself several terms, and for a reshape whose cuts do not nest.
absl::StatusOr<Strided> apply_view(const Graph& graph, NodeId view, Strided operand);
// Makes a tensor of `extent` elements along `axis` a part of a longer axis of `longer` elements, which begins at
// element `low`; a new guard excludes the other elements. Returns false if the axis is several terms.
bool place_within(Strided& strided, size_t axis, int64_t extent, int64_t low, int64_t longer);
// Merges neighbouring terms that one stride can describe into one term.
void merge_terms(std::vector<Term>& terms);

// A piece of a view: the elements that it reads from one leaf.
struct StridedPiece {
  NodeId leaf = -1;  // input, iota or constant node; -1: the number `value`
  double value = 0;  // value of a constant
  bool constant = false;
  Strided at;
};
// Returns the pieces of `id`, a leaf or a view of leaves. Each element is read from the first piece whose guards hold;
// the last piece has no guards. The error is InvalidArgument and names the node if a view is not strided, or if a
// computed value is padded or joined with others.
absl::StatusOr<std::vector<StridedPiece>> pieces_of(const Graph& graph, NodeId id);

}  // namespace wl

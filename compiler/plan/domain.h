// The loop domain of a group: every axis of every value is a product of *atoms* (factors), joined by union-find over
// the ops: elementwise equates axes, reshape cuts them (768 -> 12 * 64), transpose permutes, broadcast adds, reduce
// removes. Views of inputs become accesses (affine in the atoms). "Same loop" is then comparison of atoms, and any
// value's address is base + sum of stride * atom. A group that cannot be one loop domain is a Status that says which op
// and why.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/target/target.h"

namespace wl {

using AtomId = int;

struct Atom {
  int64_t extent = 1;
  bool reduced = false;  // some reduce or contraction of the group sums over it
  std::string name;      // "d0", "d1", ... for text
};

// Holds where 0 <= offset + sum strides[a] * atom a < extent.
struct Guard {
  int64_t offset = 0;
  std::vector<int64_t> strides;
  int64_t extent = 0;
  bool operator==(const Guard&) const = default;
};

// offset + sum strides[a] * atom a, in elements of a row-major buffer; there is an element where all guards hold.
struct Access {
  NodeId input = -1;  // the group graph's input node (or output value, for stores)
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one per atom of the domain; 0 = does not move
  std::vector<Guard> guards;     // of pieces only
  bool operator==(const Access&) const = default;
  bool moves_along(AtomId atom) const;  // the address or a guard does
};

// What an operand reads where the guards hold and those of no earlier piece do.
struct Piece {
  NodeId source = -1;  // an iota, whose value the access then is; -1: an input, or a constant
  bool constant = false;
  double value = 0;  // of a constant, whose access has guards only
  Access access;
  bool operator==(const Piece&) const = default;
};

enum class LoopClass { kMap, kRows, kColumns, kContract, kStitched, kPacked };
std::string_view name_of(LoopClass cls);

bool holds(const std::vector<AtomId>& list, AtomId atom);

struct Stitch;  // stitch.h
struct Packed;  // pack.h

struct Domain {
  LoopClass cls = LoopClass::kMap;
  std::vector<Atom> atoms;  // collapsed: neighbours that always move together are one atom
  // For every node of the group graph that is computed (not a view or leaf): the atoms its value varies over.
  std::vector<std::vector<AtomId>> varies;  // indexed by NodeId; outermost first
  // For every node and operand position: where a read of an input goes. Operands that are computed here have input =
  // -1.
  struct Operand {
    NodeId source = -1;  // the computed node, constant or iota behind the views, or -1 when it is an input
    Access access;       // valid when source == -1; behind an iota: the value itself, affine in the atoms
    // Operand 0 of take_along, always an input: its address is access + index * gather_stride, index in
    // [-gather_extent, gather_extent) and negative ones counted from the end.
    int64_t gather_stride = 0, gather_extent = 0;
    // Pads and concats: in place of source and access. The last piece has no guards.
    std::vector<Piece> pieces;
    // Whether it is an input that is read as it is.
    bool is_direct() const { return source < 0 && gather_extent == 0 && pieces.empty(); }
  };
  std::vector<std::vector<Operand>> operands;  // indexed by NodeId; empty for views and leaves
  struct Store {
    int output = 0;      // index in graph.outputs
    NodeId source = -1;  // computed node behind output views (or -1 and `copy` when an output is a view of an input)
    Access copy;         // when source == -1; behind an iota: the value itself, affine in the atoms
    Access access;       // address in the output buffer
    std::vector<Piece> pieces;  // in place of source and copy
  };
  std::vector<Store> stores;
  std::vector<AtomId> parallel;  // atoms of the grid, outermost first, in output order
  std::vector<AtomId> reduced;   // kRows, kColumns: reduced atoms; kContract: summed atoms (k)
  AtomId vector = -1;            // the atom that vector lanes run along
  AtomId second = -1;            // kMap: the atom along which transposed accesses are contiguous; -1 when none
  // kContract only: a contraction with rows and columns. One without either is a reduction of products.
  NodeId contract = -1;
  std::vector<AtomId> batch, m, n;  // with `reduced` = k; parallel = batch + m + n
  // Operand 1 moves along m and operand 0 along n: what is stored is contiguous along n wherever it can be.
  bool swapped = false;
  // Which operand of the contraction moves along n.
  int right_operand() const { return swapped ? 0 : 1; }
  std::shared_ptr<const Stitch>
      stitch;  // kStitched: several loop nests one after the other; nothing above is filled in
  std::shared_ptr<const Packed> packed;  // kPacked: several kernels side by side; nothing above is filled in
  std::string text() const;
};

// A group that is not one loop nest is an InvalidArgument Status naming the nodes that disagree: cut there. When every
// output has zero elements the domain is one parallel atom of extent 0 (class kMap) and nothing else is filled in.
// `pitches`: for outputs that are part of a larger buffer, how far a step along each axis moves in it; others are
// empty.
absl::StatusOr<Domain> analyze(const Graph& group, const Machine& machine,
                               const std::vector<std::vector<int64_t>>& pitches = {});

// The same contraction with rows and columns in each other's place; what it stores is contiguous along the rows then.
Domain turned(Domain domain);

// The longest reduced loop, the outermost of equals; -1 where nothing is reduced. It is what parts of a reduction
// share.
AtomId shared_atom(const Domain& domain);

// How often a loop over all of `atoms` turns.
int64_t extent_of(const Domain& domain, const std::vector<AtomId>& atoms);

}  // namespace wl

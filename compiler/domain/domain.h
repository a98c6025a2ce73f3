// The loop domain of a group (ops that share a kernel). Every axis of every value is a product of *atoms* (loops),
// which are found by union-find over the ops: an elementwise op equates the axes of its operands, a reshape cuts axes
// (768 -> 12 * 64), a transpose permutes them, a broadcast adds one, a reduction removes one. Views of inputs become
// accesses: the address of an element is offset + sum of stride * atom. Two axes are the same loop if they have the
// same atoms. For a group that is not one loop domain the error says which op prevents it, and why.
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
  bool reduced = false;  // whether a reduction or contraction of the group sums over it
  std::string name;      // "d0", "d1", ... for Domain::text()
};

// A condition of a read of padded or joined data. It holds at the points of the loops at which
// 0 <= offset + sum over atoms a of strides[a] * a < extent.
struct Guard {
  int64_t offset = 0;
  std::vector<int64_t> strides;
  int64_t extent = 0;
  bool operator==(const Guard&) const = default;
};

// The address offset + sum over atoms a of strides[a] * a, in elements of a row-major buffer. There is an element at
// the points of the loops at which all guards hold.
struct Access {
  NodeId input = -1;  // the input node of the group's graph (for stores: the output value)
  int64_t offset = 0;
  std::vector<int64_t> strides;  // one per atom of the domain; 0: the address does not depend on the atom
  std::vector<Guard> guards;     // only accesses of pieces have guards
  bool operator==(const Access&) const = default;
  bool moves_along(AtomId atom) const;  // whether the address or a guard depends on the atom
};

// A piece of a padded or joined (concatenated) operand. An operand reads the first of its pieces whose guards all hold.
struct Piece {
  NodeId source = -1;  // an iota, and the access computes its value; -1: an input, or a constant
  bool constant = false;
  double value = 0;  // value of a constant; its access has guards only
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
  std::vector<Atom> atoms;  // neighbouring loops that are always traversed together are one atom
  // For every node of the group's graph that is computed (not a view or leaf): the atoms that its value varies over.
  std::vector<std::vector<AtomId>> varies;  // indexed by NodeId; outermost first
  // One operand of a node: where it is read. Operands that the group computes have access.input = -1.
  struct Operand {
    NodeId source = -1;  // the computed node, constant or iota behind the views, or -1 when it is an input
    Access access;       // valid if source == -1; for an iota: its value, which is affine in the atoms
    // For operand 0 of take_along, which is always an input: its address is access + index * gather_stride. The index
    // lies in [-gather_extent, gather_extent); a negative one counts from the end.
    int64_t gather_stride = 0, gather_extent = 0;
    // For pads and concats: used in place of source and access. The last piece has no guards.
    std::vector<Piece> pieces;
    // Whether the operand is an input that is read without padding and without computed indices.
    bool is_direct() const { return source < 0 && gather_extent == 0 && pieces.empty(); }
  };
  std::vector<std::vector<Operand>> operands;  // indexed by NodeId; empty for views and leaves
  struct Store {
    int output = 0;      // index in graph.outputs
    NodeId source = -1;  // the computed node behind the output's views; -1: the output is a view of an input (`copy`)
    Access copy;         // valid if source == -1; for an iota: its value, which is affine in the atoms
    Access access;       // address in the output buffer
    std::vector<Piece> pieces;  // for pads and concats: used in place of source and copy
  };
  std::vector<Store> stores;
  std::vector<AtomId> parallel;  // atoms that are not reduced, outermost first, in the order of the largest output
  std::vector<AtomId> reduced;   // kRows, kColumns: reduced atoms; kContract: summed atoms (k)
  AtomId vector = -1;            // the atom that vector lanes run along
  AtomId second = -1;            // kMap: the atom along which transposed reads are contiguous; -1: there is none
  // kContract only: a contraction with rows (m) and columns (n). A contraction that lacks one of them is treated as a
  // reduction of products.
  NodeId contract = -1;
  std::vector<AtomId> batch, m, n;  // `reduced` is k, and `parallel` is batch + m + n
  // Whether m and n were exchanged, so that operand 1 moves along m and operand 0 along n. classify() exchanges them
  // where only this makes the stored values contiguous along n.
  bool swapped = false;
  // Returns which operand of the contraction moves along n.
  int right_operand() const { return swapped ? 0 : 1; }
  std::shared_ptr<const Stitch>
      stitch;  // kStitched: several loop nests one after the other; of the fields above only cls is set
  std::shared_ptr<const Packed> packed;  // kPacked: several kernels side by side; of the others only cls is set
  std::string text() const;
};

// Returns the loop domain of a group. If the group is not one loop nest, the error is InvalidArgument and names the
// nodes that disagree: the caller should cut the group there. If every output has zero elements, the domain is one
// parallel atom of extent 0 (class kMap), and no node has axes or operands. `pitches`: for each output that is part of
// a larger buffer, how far a step along each axis moves in that buffer; empty for other outputs.
absl::StatusOr<Domain> analyze(const Graph& group, const Machine& machine,
                               const std::vector<std::vector<int64_t>>& pitches = {});

// Returns the domain of a contraction with m (rows) and n (columns) exchanged; its stored values are then contiguous
// along m.
Domain turned(Domain domain);

// Returns the longest reduced atom, the outermost one of equals; -1 if nothing is reduced. Where several blocks share a
// reduction, this is the loop that they divide among them.
AtomId shared_atom(const Domain& domain);

// Returns the number of iterations of a loop nest over `atoms`: the product of their extents.
int64_t extent_of(const Domain& domain, const std::vector<AtomId>& atoms);

}  // namespace wl

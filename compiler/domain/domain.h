// The loop domain of a group (ops that share a kernel). Every axis of every value is a product of *atoms* (loops),
// which are found by union-find over the ops: an elementwise op equates the axes of its operands, a reshape cuts axes
// (768 -> 12 * 64), a transpose permutes them, a broadcast adds one, a reduction removes one. Views of inputs become
// accesses: the address of an element is offset + sum of stride * atom. Two axes are the same loop if they have the
// same atoms. If a group is not one loop domain, the error says which op is the reason, and why.
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
  bool reduced = false;  // whether a reduction or contraction of the group sums over this loop
  std::string name;      // name in Domain::text(): "d0", "d1", ...
};

// A condition on a read of padded or joined data. It holds for those iterations of the loops for which 0 <= offset +
// sum of strides[a] * a over all atoms a < extent.
struct Guard {
  int64_t offset = 0;
  std::vector<int64_t> strides;
  int64_t extent = 0;
  bool operator==(const Guard&) const = default;
};

// The address offset + sum of strides[a] * a over all atoms a, in elements of a row-major buffer. An iteration of the
// loops accesses an element only if all guards hold.
struct Access {
  NodeId input = -1;  // the input node that is read; for stores: the node that is stored
  int64_t offset = 0;
  std::vector<int64_t> strides;  // for each atom its stride in elements; 0: the address does not depend on the atom
  std::vector<Guard> guards;     // always empty unless this is the access of a piece
  bool operator==(const Access&) const = default;
  bool moves_along(AtomId atom) const;  // returns whether the address or a guard depends on the atom
};

// A piece of a padded or joined (concatenated) operand. Each element is read from the first piece whose guards all
// hold.
struct Piece {
  NodeId source = -1;  // the iota whose value `access` computes; -1: the piece is an input or a constant
  bool constant = false;
  double value = 0;  // the value of a constant piece, whose `access` has only guards
  Access access;
  bool operator==(const Piece&) const = default;
};

enum class LoopClass { kMap, kRows, kColumns, kContract, kStitched, kPacked };
std::string_view name_of(LoopClass cls);

bool holds(const std::vector<AtomId>& list, AtomId atom);

struct Stitch;  // defined in stitch.h
struct Packed;  // defined in pack.h

struct Domain {
  LoopClass cls = LoopClass::kMap;
  std::vector<Atom> atoms;  // the loops; neighbouring loops that are always traversed together are one atom
  // For every node that the group computes (no view or leaf): the atoms along which its value varies.
  std::vector<std::vector<AtomId>> varies;  // lists by NodeId; in a list, the outermost atom comes first
  // Where one operand of a node is read. An operand that the group computes has access.input = -1.
  struct Operand {
    NodeId source = -1;  // the computed node, constant or iota that the operand is a view of; -1: an input
    Access access;       // the operand's access if source == -1; for an iota: its value as a sum over the atoms
    // For operand 0 of take_along, which is always an input: the address is access + index * gather_stride. The index
    // is in [-gather_extent, gather_extent); a negative one counts from the end.
    int64_t gather_stride = 0, gather_extent = 0;
    // For pads and concats: the pieces, which replace source and access. The last piece has no guards.
    std::vector<Piece> pieces;
    // Whether the operand is an input that is read without padding and without computed indices.
    bool is_direct() const { return source < 0 && gather_extent == 0 && pieces.empty(); }
  };
  std::vector<std::vector<Operand>> operands;  // operands of each node, indexed by NodeId; none for views and leaves
  struct Store {
    int output = 0;             // the output that is stored: its index in graph.outputs
    NodeId source = -1;         // the computed node, constant or iota that the output is a view of; -1: an input
    Access copy;                // the access to the input if source == -1; for an iota: its value as a sum over atoms
    Access access;              // the address in the output buffer
    std::vector<Piece> pieces;  // for pads and concats: the pieces, which replace source and copy
  };
  std::vector<Store> stores;
  std::vector<AtomId> parallel;  // the atoms that are not reduced, outermost first, in the largest output's order
  std::vector<AtomId> reduced;   // the reduced atoms; in class kContract, those that the contraction sums over (k)
  AtomId vector = -1;            // the atom along which vector lanes lie
  // In class kMap, the atom along which transposed reads are contiguous; -1: there is none.
  AtomId second = -1;
  // Only for kContract: the node of the contraction, which has rows (m) and columns (n). A contraction without rows
  // or without columns is treated as a reduction of products, in another class.
  NodeId contract = -1;
  std::vector<AtomId> batch, m, n;  // the contraction's batch, row and column atoms; together they are `parallel`
  // Whether m and n were exchanged, so that operand 1 has the rows, m, and operand 0 the columns, n. classify()
  // exchanges them only if this makes the stored values contiguous along n.
  bool swapped = false;
  // Returns the number of the operand that varies along n.
  int right_operand() const { return swapped ? 0 : 1; }
  // Inputs that no asynchronous copy can read: they are not in device memory, or a block's part of them begins inside
  // a word of 4 bytes.
  std::vector<NodeId> uncopied;
  // Only for class kStitched, in which no field above except cls is set: the loop nests that run one after another.
  std::shared_ptr<const Stitch> stitch;
  // Only for class kPacked, in which no other field except cls is set: the kernels that run side by side.
  std::shared_ptr<const Packed> packed;
  std::string text() const;
};

// Returns the loop domain of a group. If the group is not one loop nest, the error is InvalidArgument and names the
// nodes that need different loops; the caller should cut the group there. If every output has zero elements, the domain
// is one parallel atom of extent 0 (class kMap), and no node has axes or operands. `pitches`: for each output that is
// part of a larger buffer, the strides of its axes in that buffer; empty for other outputs.
absl::StatusOr<Domain> analyze(const Graph& group, const Machine& machine,
                               const std::vector<std::vector<int64_t>>& pitches = {});

// Returns the domain of a contraction with m (rows) and n (columns) exchanged. Values that were stored contiguously
// along n are contiguous along m in it.
Domain turned(Domain domain);

// Returns the longest reduced atom, or the outermost of several longest ones; -1 if no atom is reduced. If several
// blocks compute one reduction together, this is the loop that they divide among them.
AtomId shared_atom(const Domain& domain);

// Returns the number of iterations of a loop nest over `atoms`: the product of their extents.
int64_t extent_of(const Domain& domain, const std::vector<AtomId>& atoms);

}  // namespace wl

// Makes the elementwise part of a kernel over tiles: the value of a node is one map instruction, whose operands are
// loads of inputs, constants, and tiles that exist already (such as accumulators and converted tiles).
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "compiler/schedule/pieces.h"

namespace wl {

// A place: an index expression for every atom (loop of the group). For an atom that a tile runs along, the expression
// is the index of the tile's first element.
using Place = std::vector<Affine>;

// The atom that an axis of tiles runs along (-1: none), and how many elements tiles have along it.
struct TileLoop {
  AtomId atom = -1;
  int64_t extent = 1;
};

// Returns the memory that a tile at `place` accesses by `access`. `axes`: the atom that each axis of the tile runs
// along (-1: none).
Slice slice_at(BufferId buffer, const Access& access, const Place& place, const std::vector<AtomId>& axes);
// Returns the condition under which the elements of a tile at `place` exist. `axes`: as in slice_at().
SliceGuard guard_at(const Guard& guard, const Place& place, const std::vector<AtomId>& axes);

// Loads lanes x width elements (a square if width = lanes) in vectors along axis0, along which the access is
// contiguous, and transposes them in registers, so that lanes lie along axis1. Appends the instructions to `into`, and
// returns the transposed tile.
TileId turned_square(KernelBuilder& out, DType dtype, const Access& access, const Place& place, AtomId axis0,
                     AtomId axis1, int lanes, int64_t width, std::vector<Instr>& into);

// The state of an elementwise computation over tiles at one place. The caller must append the instructions in `code` to
// the kernel.
struct TileExpr {
  const Graph& group;
  const Domain& domain;
  KernelBuilder& out;
  Place place;
  std::vector<TileLoop> loops;  // one loop for each axis of the tiles
  int lanes = 1;                // number of elements in a vector, along the last axis
  // Bounds of the valid extent of each axis (Tile::bound); empty: the whole extent.
  std::vector<std::vector<Affine>> bound = {};
  // Whether the tiles of operands have full extent even along axes along which the operand is constant.
  bool whole = false;
  std::map<NodeId, TileId> known = {};  // tiles of nodes whose values were computed before
  // If set: makes the tile of an input; if it returns -1, load_input() makes the tile.
  std::function<TileId(const Access&)> load = nullptr;
  std::vector<Instr> code = {};  // instructions of the computation: loads, then the maps
  // If set: returns the layout of a tile that varies along the axes for which the argument is true.
  std::function<Layout(const std::vector<bool>&)> layout = nullptr;

  // Returns the atom of each of `loops`.
  std::vector<AtomId> axes() const;
  // Makes a tile that has the whole extent of each loop.
  TileId tile(DType dtype) const;
  // Returns the tile with the value of a node, or of one operand of a node; appends its instructions to `code`.
  // Unimplemented: the value needs an op that has no expression over tiles, such as a gather.
  absl::StatusOr<TileId> value(NodeId node);
  absl::StatusOr<TileId> operand(NodeId node, int position);
  TileId load_input(const Access& access);

 private:
  TileId load_pieces(const std::vector<Piece>& pieces, DType dtype);
  int affine_expr(const Access& value, DType dtype, Instr& map);
  TileId shaped(DType dtype, const std::vector<bool>& moves) const;
  absl::StatusOr<int> expression(NodeId node, Instr& map, std::map<NodeId, int>& memo);
  absl::StatusOr<int> leaf(NodeId node, int position, Instr& map, std::map<NodeId, int>& memo);
  TileId finish(Instr map, int root, DType dtype);
};

}  // namespace wl

// The elementwise part of a kernel over tiles: the value of a node as one map instruction. Its operands are loads of
// the inputs, constants, and tiles that exist already (accumulators, converted tiles).
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "compiler/schedule/pieces.h"

namespace wl {

// An index expression for every atom; atoms that a tile runs along hold the tile's first element.
using Place = std::vector<Affine>;

// A loop that an axis of tiles runs along, and how far; -1: none.
struct TileLoop {
  AtomId atom = -1;
  int64_t extent = 1;
};

// The elements of `access` at a place: the axes of the tile run along these atoms (-1: none).
Slice slice_at(BufferId buffer, const Access& access, const Place& place, const std::vector<AtomId>& axes);
// Whether an element is there, as a condition of a tile whose axes run along these atoms.
SliceGuard guard_at(const Guard& guard, const Place& place, const std::vector<AtomId>& axes);

// A square of `access` at a place, lanes x lanes, or its first `width` vectors: loaded in vectors along axis0, in which
// the access is contiguous, and transposed in registers, so that lanes lie along axis1. Appends to `into`.
TileId turned_square(KernelBuilder& out, DType dtype, const Access& access, const Place& place, AtomId axis0,
                     AtomId axis1, int lanes, int64_t width, std::vector<Instr>& into);

struct TileExpr {
  const Graph& group;
  const Domain& domain;
  KernelBuilder& out;
  Place place;
  std::vector<TileLoop> loops;                  // one for each axis of the tiles
  int lanes = 1;                                // along the last axis
  std::vector<std::vector<Affine>> bound = {};  // of tiles that run along the last axis
  bool whole = false;                   // operands cover the whole tile even where they are constant along an axis
  std::map<NodeId, TileId> known = {};  // nodes whose tiles exist
  std::function<TileId(const Access&)> load = nullptr;  // overrides how an input is read; -1: as usual
  std::vector<Instr> code = {};                         // loads, then the maps, in order
  // Overrides how tiles are laid out, by the axes that they move along.
  std::function<Layout(const std::vector<bool>&)> layout = nullptr;

  // The atoms of the loops.
  std::vector<AtomId> axes() const;
  // A tile of this shape.
  TileId tile(DType dtype) const;
  // The value of a node, or of one operand of a node, as a tile; appends to `code`.
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

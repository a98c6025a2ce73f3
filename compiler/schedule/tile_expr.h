// The elementwise part of a kernel over tiles with two axes: the value of a node as one map instruction. Its operands
// are loads of the inputs, constants, and tiles that exist already (accumulators, converted tiles).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <vector>

#include "compiler/schedule/pieces.h"

namespace wl {

// An index expression for every atom; atoms that a tile runs along hold the tile's first element.
using Place = std::vector<Affine>;

// The elements of `access` at a place: axis 0 and 1 of the tile run along atoms (-1: none).
Slice slice_at(BufferId buffer, const Access& access, const Place& place, AtomId axis0, AtomId axis1);

// A square of `access` at a place, lanes x lanes, or its first `width` vectors: loaded in vectors along axis0, in which
// the access is contiguous, and transposed in registers, so that lanes lie along axis1. Appends to `into`.
TileId turned_square(KernelBuilder& out, DType dtype, const Access& access, const Place& place, AtomId axis0,
                     AtomId axis1, int lanes, int64_t width, std::vector<Instr>& into);

struct TileExpr {
  const Graph& group;
  const Domain& domain;
  KernelBuilder& out;
  Place place;
  AtomId axis0 = -1, axis1 = -1;
  int64_t extent0 = 1, extent1 = 1;
  int lanes = 1;                           // along axis 1
  std::vector<std::vector<Affine>> bound;  // of tiles that run along axis 1
  bool whole = false;                      // operands cover the whole tile even where they are constant along an axis
  std::map<NodeId, TileId> known;          // nodes whose tiles exist
  std::function<TileId(const Access&)> load;  // overrides how an input is read; -1: as usual
  std::vector<Instr> code;                    // loads, then the maps, in order
  // Overrides how tiles are laid out, by the axes that they move along.
  std::function<Layout(bool, bool)> layout = nullptr;

  // A tile of this shape.
  TileId tile(DType dtype) const;
  // The value of a node, or of one operand of a node, as a tile; appends to `code`.
  absl::StatusOr<TileId> value(NodeId node);
  absl::StatusOr<TileId> operand(NodeId node, int position);
  TileId load_input(const Access& access);

 private:
  Affine index_of(int64_t offset, const std::vector<int64_t>& strides) const;
  TileId load_pieces(const std::vector<Piece>& pieces, DType dtype);
  int affine_expr(const Access& value, DType dtype, Instr& map);
  TileId shaped(DType dtype, bool move0, bool move1) const;
  absl::StatusOr<int> expression(NodeId node, Instr& map, std::map<NodeId, int>& memo);
  absl::StatusOr<int> leaf(NodeId node, int position, Instr& map, std::map<NodeId, int>& memo);
  TileId finish(Instr map, int root, DType dtype);
};

// A loop that an axis of tiles runs along; -1: none.
struct TileLoop {
  AtomId atom = -1;
  int64_t extent = 1;
};
// An expression over tiles whose two axes run along these loops, laid out as `layout` says.
TileExpr tile_expr(const Graph& group, const Domain& domain, KernelBuilder& out, const Place& place,
                   const std::array<TileLoop, 2>& loops, std::function<Layout(bool, bool)> layout);

}  // namespace wl

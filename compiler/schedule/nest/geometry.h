// Where the rows of a loop nest lie. A *row* is one point of the parallel atoms, and one tile of the vector atom where
// that is parallel; a block owns a range of rows, or with several *parts* a share of one row.
#pragma once

#include <vector>

#include "compiler/kernel/builder.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// Where the code of one phase works: an index expression for every atom but the vector atom.
struct RowPlace {
  std::vector<Affine> atom;
  Affine vector_base;  // first element along the vector atom
  Affine row;          // number of the row, not clamped
  Affine ring;         // number of the row within its block; it selects the slot of a row buffer
};

// Owns the extents of a nest, the variables of its loops, and which share of a row a block has. Lanes, tiles and shares
// are set by the lowering of CPUs or GPUs before the first place is asked for.
class RowGeometry {
 public:
  // lanes: elements along the vector atom that one instruction handles. tile: elements of a row where the vector atom
  // is parallel. `out` makes the variables, and must outlive the geometry.
  RowGeometry(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine, int lanes,
              int64_t tile, KernelBuilder& out);

  int lanes() const { return lanes_; }
  int64_t vector_extent() const { return vector_extent_; }
  bool vector_reduced() const { return vector_reduced_; }
  int64_t tile() const { return tile_; }  // elements along the vector atom that are computed as one tile
  int64_t vector_tiles() const { return vector_tiles_; }  // rows along the vector atom
  int64_t row_extent() const { return row_extent_; }      // elements along the vector atom that a block has of a row
  int64_t rows() const { return rows_; }
  int64_t register_rows() const { return register_rows_; }
  AtomId register_rows_atom() const { return register_rows_atom_; }  // -1: tiles are one row high
  const std::vector<AtomId>& row_atoms() const { return row_atoms_; }
  const std::vector<AtomId>& outer_reduced() const { return outer_reduced_; }
  const std::vector<VarId>& outer_vars() const { return outer_vars_; }
  VarId tile_var() const { return tile_var_; }  // of the loop over the tiles of a row; -1: none
  int64_t parts() const { return parts_; }      // blocks that share a row
  const Affine& part() const { return part_; }  // which of them this block is
  int64_t share() const { return share_; }
  bool shares_vector() const { return parts_ > 1 && part_atom_ == domain_.vector; }
  int row_teams() const { return row_teams_; }  // teams of a block that share a row

  void add_outer_loops();
  // Distributes the iterations of the outermost reduced loop over `teams` teams.
  void share_outermost(int teams);
  // Lets the blocks of a row share one of its loops; a share along the vector atom is a multiple of `step`.
  void share_row(int64_t step);
  void set_tile(int64_t tile) { tile_ = tile; }
  void set_tile_var(VarId var) { tile_var_ = var; }
  void set_row_extent(int64_t extent) { row_extent_ = extent; }

  // What a value that varies along these atoms is: known inside a phase's loops only, a vector, of several rows.
  bool inner(const std::vector<AtomId>& varies) const;
  bool wide(const std::vector<AtomId>& varies) const;
  bool across_rows(const std::vector<AtomId>& varies) const;
  std::vector<AtomId> atoms_of(const Access& access) const;

  // The first row of a block that owns `rows` of them, or a share of one.
  Affine row_of_block(int64_t rows);
  // Which indices of a row beyond the last are clamped: on CPUs all of them; on GPUs, where a team without a row stores
  // nothing, the outermost, since no other can lie outside.
  enum class Clamp { kEveryIndex, kOutermostIndex };
  // `limits`: upper bounds of the row's number.
  RowPlace place_of(const Affine& row, const std::vector<Affine>& limits = {}, Clamp clamp = Clamp::kOutermostIndex);
  // The bound of wide tiles at a place; empty where tiles divide the vector atom.
  std::vector<std::vector<Affine>> bound_at(const RowPlace& place) const;
  // Trips of the loop over an outer reduced atom, by its position, and of the loop over the tiles of a row.
  std::vector<Affine> outer_trips(size_t loop);
  std::vector<Affine> tile_trips() const;

  Affine index_of(int64_t offset, const std::vector<int64_t>& strides, const RowPlace& place) const;
  Slice slice_of(BufferId buffer, const Access& access, const RowPlace& place, bool is_wide) const;

 private:
  int64_t steps_of(AtomId atom) const;
  RowPlace cache_block_place(const Affine& row, RowPlace place);

  const Domain& domain_;
  KernelBuilder& out_;
  std::vector<AtomId> row_atoms_;      // parallel atoms but the vector atom
  std::vector<AtomId> outer_reduced_;  // reduced atoms but the vector atom
  std::vector<VarId> outer_vars_;      // of the loops over them
  std::vector<Affine> outer_index_;    // index along them
  int lanes_ = 1;
  bool vector_reduced_ = false;
  int64_t vector_extent_ = 1, tile_ = 1, vector_tiles_ = 1, row_extent_ = 1, rows_ = 1;
  AtomId register_rows_atom_ = -1;  // tiles are `register_rows_` neighbouring rows along this atom
  int64_t register_rows_ = 1;
  AtomId cache_block_atom_ =
      -1;  // all iterations of this loop walk the same `cache_block_rows_` rows before the next block
  int64_t cache_block_rows_ = 0;
  VarId tile_var_ = -1;
  int row_teams_ = 1;
  int64_t parts_ = 1, share_ = 0;  // each part has `share_` iterations of the loop over part_atom_
  AtomId part_atom_ = -1;
  Affine part_;
};

}  // namespace wl

// Where the rows of a loop nest lie. An atom is one loop of the group; the vectorised axis is the atom that vector
// lanes run along. A *row* is one point of the parallel atoms and, where the vectorised axis is parallel, one tile
// along that atom. A block owns a range of rows, or, where a row has several *parts*, a share of one row.
#pragma once

#include <vector>

#include "compiler/domain/domain.h"
#include "compiler/kernel/builder.h"
#include "compiler/schedule/space.h"

namespace wl {

// The place at which the code of one phase works. `atom` has an index expression for every atom but the vectorised
// axis.
struct RowPlace {
  std::vector<Affine> atom;
  Affine vector_base;  // index of the first element along the vectorised axis
  Affine row;          // number of the row, which may lie beyond the last row
  Affine ring;         // number of the row within its block; it selects a slot of a row buffer
};

// Owns the extents of a nest, the variables of its loops, and which share of a row a block has. The lowering for CPUs
// or GPUs sets lanes, tiles and shares before it asks for the first RowPlace.
class RowGeometry {
 public:
  // lanes: elements along the vectorised axis that one instruction handles (on a GPU, all threads of a team together).
  // tile: elements of a row if the vectorised axis is parallel. `out` makes the variables, and must outlive the
  // geometry.
  RowGeometry(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine, int lanes,
              int64_t tile, KernelBuilder& out);

  int lanes() const { return lanes_; }
  int64_t vector_extent() const { return vector_extent_; }
  bool vector_reduced() const { return vector_reduced_; }
  int64_t tile() const { return tile_; }  // elements along the vectorised axis that are computed as one tile
  // If the vectorised axis is parallel: number of tiles along it, each a row.
  int64_t vector_tiles() const { return vector_tiles_; }
  int64_t row_extent() const { return row_extent_; }  // elements of a row, along the vectorised axis, that a block has
  int64_t rows() const { return rows_; }
  int64_t register_rows() const { return register_rows_; }
  // The atom along which a tile has several neighbouring rows; -1: a tile has one row.
  AtomId register_rows_atom() const { return register_rows_atom_; }
  const std::vector<AtomId>& row_atoms() const { return row_atoms_; }
  const std::vector<AtomId>& outer_reduced() const { return outer_reduced_; }
  const std::vector<VarId>& outer_vars() const { return outer_vars_; }
  VarId tile_var() const { return tile_var_; }  // variable of the loop over a row's tiles; -1: none
  int64_t parts() const { return parts_; }      // number of blocks that share a row
  const Affine& part() const { return part_; }  // number of this block among those that share its row
  int64_t share() const { return share_; }      // iterations of the shared loop that each part has
  bool shares_vector() const { return parts_ > 1 && part_atom_ == domain_.vector; }
  int row_teams() const { return row_teams_; }  // number of teams of a block that share one row

  // Makes the variables of the loops over the reduced atoms other than the vectorised axis (outer_reduced()).
  void add_outer_loops();
  // Distributes the iterations of the outermost reduced loop over `teams` teams.
  void share_outermost(int teams);
  // Lets the blocks of a row share one of its loops; a share along the vectorised axis is a multiple of `step`.
  void share_row(int64_t step);
  void set_tile(int64_t tile) { tile_ = tile; }
  void set_tile_var(VarId var) { tile_var_ = var; }
  void set_row_extent(int64_t extent) { row_extent_ = extent; }

  // For a value that varies along the atoms `varies`: whether it exists only inside a phase's loops (inner), has
  // several lanes along the vectorised axis (wide), and differs between the rows of a tile (across_rows).
  bool inner(const std::vector<AtomId>& varies) const;
  bool wide(const std::vector<AtomId>& varies) const;
  bool across_rows(const std::vector<AtomId>& varies) const;
  // Returns the atoms (loops of the group) along which an access varies.
  std::vector<AtomId> atoms_of(const Access& access) const;

  // The number of the first row of a block, which owns `rows` rows or a share of them.
  Affine row_of_block(int64_t rows);
  // Which indices of a row beyond the last one are clamped. CPUs clamp all of them, so that the last row is computed
  // again. On GPUs, a team whose row lies beyond the last one stores nothing, so only the outermost index is clamped;
  // no other index can leave its range.
  enum class Clamp { kEveryIndex, kOutermostIndex };
  // Returns the loop indices (place) of row number `row`. The number is first clamped to the upper bounds `limits`.
  RowPlace place_of(const Affine& row, const std::vector<Affine>& limits = {}, Clamp clamp = Clamp::kOutermostIndex);
  // The bound of tiles along the vectorised axis at `place`; empty if the tile size divides the axis's extent.
  std::vector<std::vector<Affine>> bound_at(const RowPlace& place) const;
  // outer_trips: the trip count of the loop over the atom outer_reduced()[loop]. tile_trips: the trip count of the loop
  // over the tiles of a row.
  std::vector<Affine> outer_trips(size_t loop);
  std::vector<Affine> tile_trips() const;

  // index_of: the value offset + sum of strides * atoms at `place`. slice_of: the memory that a tile at `place`
  // accesses.
  Affine index_of(int64_t offset, const std::vector<int64_t>& strides, const RowPlace& place) const;
  Slice slice_of(BufferId buffer, const Access& access, const RowPlace& place, bool is_wide) const;

 private:
  int64_t steps_of(AtomId atom) const;
  RowPlace cache_block_place(const Affine& row, RowPlace place);

  const Domain& domain_;
  KernelBuilder& out_;
  std::vector<AtomId> row_atoms_;      // parallel atoms other than the vectorised axis
  std::vector<AtomId> outer_reduced_;  // reduced atoms other than the vectorised axis
  std::vector<VarId> outer_vars_;      // variables of the loops over outer_reduced_
  std::vector<Affine> outer_index_;    // index along each atom of outer_reduced_
  int lanes_ = 1;
  bool vector_reduced_ = false;
  int64_t vector_extent_ = 1, tile_ = 1, vector_tiles_ = 1, row_extent_ = 1, rows_ = 1;
  AtomId register_rows_atom_ = -1;  // a tile has `register_rows_` neighbouring rows along this atom
  int64_t register_rows_ = 1;
  // All iterations of the loop over this atom walk the same `cache_block_rows_` rows before the next block of rows
  // begins; -1: there are no cache blocks.
  AtomId cache_block_atom_ = -1;
  int64_t cache_block_rows_ = 0;
  VarId tile_var_ = -1;
  int row_teams_ = 1;
  int64_t parts_ = 1, share_ = 0;  // number of parts of a row; iterations of the loop over part_atom_ in each part
  AtomId part_atom_ = -1;
  Affine part_;
};

}  // namespace wl

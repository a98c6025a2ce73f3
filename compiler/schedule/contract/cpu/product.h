// What a contraction on CPUs is under a schedule: how its operands are read, and how its loops are divided into tasks,
// blocks and tiles. The lowering (lowering.h) emits code from these facts. The search space (space.cpp) tells from them
// which values of a choice give the same kernel.
#pragma once

#include <optional>
#include <vector>

#include "absl/hash/hash.h"
#include "compiler/domain/image.h"
#include "compiler/domain/merged_columns.h"
#include "compiler/schedule/contract/dot.h"
#include "compiler/schedule/contract/tiles.h"
#include "compiler/schedule/space.h"

namespace wl {

// One operand of the contraction.
struct CpuSide {
  int position = 0;  // the operand's number in the contraction: 0 or 1
  bool packed = false;
  bool direct = false;  // whether the operand is an unchanged input
  // Whether the operand is not packed, and the micro-kernel does elementwise work on each element that it reads.
  bool computed = false;
  bool words = false;  // with words (dot.h): whether the elements of each word are neighbours in memory
  // how the operand's memory is read; with `computed`: the memory of its input that varies along K
  Access access;
};

// The extents that a schedule divides, and the facts that determine how.
struct CpuLoops {
  int64_t rows = 1, outer_rows = 1;        // of the last row atom, and of the one around it
  int64_t columns = 1, outer_columns = 1;  // of the last column atom, and of all others
  int64_t lanes = 1;                       // elements of a vector of columns
  bool has_outer_rows = false;
  // Of an image whose pixels are rows or columns: its rows, the pixels of a row and, where the image is copied, the
  // positions of a row of the copy.
  int64_t image_rows = 1, image_width = 1, image_positions = 1;
  bool rows_are_pixels = false, columns_are_pixels = false, copies_image = false;
  bool fits_tiles = false;     // whether tile registers multiply
  bool cuts_anywhere = false;  // whether panels of one block may begin at any vector
  // Along the outermost loop over K: its elements, those of a word, and the words of an iteration. Of the other loops:
  // the product of their iterations.
  int64_t depth = 1, depth_group = 1, depth_words = 1, inner_turns = 1;
  bool blocks_depth = true;  // whether K may be divided into blocks
  bool packs_left = false, packs_right = false;
  int64_t left_group = 1;  // packed elements of the left operand for an iteration over K
};

// How a schedule divides the loops.
struct CpuSplit {
  struct Rows {                                              // a group of row tiles of equal height
    int64_t height = 0, step = 0, first_row = 0, count = 0;  // step: the rows from one tile to the next
  };
  struct Panels {  // a group of column panels of equal width
    int64_t width = 0, first_column = 0, count = 0;
  };
  int64_t mr = 1, nr = 1;  // the largest numbers of rows and of columns of a tile
  int64_t row_tasks = 1, column_tasks = 1, rows_per_task = 1;
  int64_t outer_rows_per_task = 1, outer_rows_per_block = 1, row_tiles = 1;
  int64_t panels_per_column_atom = 1, panels = 1, panels_per_task = 1, panels_per_block = 1;
  int64_t columns_per_block = 1;  // the columns in all panels of a block
  bool is_whole_row = false;      // whether the panels of a block are all columns, cut where it suits
  int64_t image_rows_per_task = 1, image_rows_per_block = 1;
  int64_t k_block = 1, k_blocks = 1;  // elements along the outermost loop over K in a block; the number of such blocks
  int64_t depth = 1, left_depth = 1;  // iterations of all loops over K in a block; packed elements of the left operand
  std::vector<Rows> row_groups;
  // A block's panels in groups of equal width. There are several groups if an even split of the columns gives panels of
  // different widths.
  std::vector<Panels> panel_groups;
  // Hashes the members on which the others depend. Splits of the same loops whose hashes are equal give the same code.
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const CpuSplit& split) {
    return Hash::combine(std::move(hash), split.mr, split.nr, split.row_tasks, split.column_tasks,
                         split.outer_rows_per_task, split.outer_rows_per_block, split.row_tiles, split.panels,
                         split.panels_per_task, split.panels_per_block, split.columns_per_block,
                         split.image_rows_per_task, split.image_rows_per_block, split.k_block);
  }
};

// Divides the loops. InvalidArgument where the tasks would not be equal.
absl::StatusOr<CpuSplit> split_of(const CpuLoops& loops, const Schedule& schedule);

struct CpuProduct {
  CpuProduct(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine);
  CpuProduct(const CpuProduct&) = delete;
  // InvalidArgument if the schedule's choices of operands and instructions do not fit the contraction.
  absl::Status check(const Schedule& schedule) const;
  CpuLoops loops() const;

  // Whether an image's pixels are the contraction's rows. They are with turn_tiles, and if the left operand's image is
  // copied.
  bool rows_are_pixels() const { return turned.has_value() || slides_on_rows; }
  bool columns_are_pixels() const { return height >= 0 && !rows_are_pixels(); }
  const CpuSide& image_side() const { return rows_are_pixels() ? a : b; }
  bool widens() const { return dot && dot->widened; }
  // step_of: the number of elements along K that one iteration of loop number `k` over K takes. turns_of: the number of
  // iterations that cover `extent` elements, or all of them. words_of_turn: how many words of each operand one
  // iteration takes.
  int64_t step_of(size_t k) const { return dot && dot->k_atom == k_atoms[k] ? dot->group : 1; }
  int64_t turns_of(size_t k, int64_t extent) const { return (extent + step_of(k) - 1) / step_of(k); }
  int64_t turns_of(size_t k) const { return turns_of(k, domain.atoms[k_atoms[k]].extent); }
  int64_t words_of_turn(size_t k) const { return tiles && tiles->atom == k_atoms[k] ? tiles->words : 1; }
  DType operand_dtype(const CpuSide& side) const {
    return group.nodes[group.nodes[domain.contract].operands[side.position]].dtype;
  }
  // The dtype of an operand's packed copy, and that of the tiles into which micro-kernels read an operand.
  DType packed_dtype(const CpuSide& side) const { return dot && !(widens() && &side == &a) ? DType::u32 : dtype; }
  DType read_dtype(const CpuSide& side) const { return side.packed || dot ? packed_dtype(side) : operand_dtype(side); }
  // Whether the epilogue takes more than 8 issue slots for each element. Such an epilogue would need registers that the
  // accumulators occupy.
  bool has_heavy_epilogue() const;

  const Graph& group;
  const Machine& machine;
  std::optional<Domain> turned;  // with turn_tiles: the domain with rows and columns exchanged
  const Domain& whole;
  std::optional<Image> image;      // with copy_image: the image that is copied
  bool slides_on_rows = false;     // whether turn_tiles is off and `image` is the image of the left operand
  std::optional<Dot> dot;          // how words of narrow elements are multiplied; nullopt: they are not
  std::optional<TileSteps> tiles;  // the steps along K in tile registers, with the choice `matrix`
  std::optional<MergedColumns> merged;
  std::optional<Guard> zeros;  // with skip_padding: the guard of the image's rows, which holds outside the padding
  const Domain& domain;        // the domain with pixels as columns if `merged` is set, else `whole`
  DType dtype = DType::f32;    // dtype of the accumulators, and of packed operands that do not consist of words
  int lanes = 1;
  AtomId row_atom = -1, column_atom = -1;  // the last atom of the rows, and of the columns; -1: there is none
  // The loop around the last row atom; -1: there is none. This loop runs inside a task, so that all its iterations
  // share one copy of the right operand, or of the image.
  AtomId outer_row_atom = -1;
  std::vector<AtomId> k_atoms;
  int64_t rows = 1, columns = 1;  // of row_atom and column_atom, the columns with those between the rows of an image
  // The atoms of an image's rows and of the pixels of a row; -1: there are none. They are set if `merged` is set, and
  // if the image of `image` or `turned` has rows. A task computes some rows of the image, in blocks of several rows,
  // and a block packs or copies its part of the image.
  AtomId height = -1, width = -1;
  CpuSide a, b;
};

// A copied image: distances in elements from one position of a row to the next, from one row to the next and, for each
// loop over K, from one plane to the next; and the elements of all planes.
struct CpuImageCopy {
  int64_t position_pitch = 1, row_pitch = 1;
  std::vector<int64_t> plane_pitches;
  int64_t elements = 1;
};
CpuImageCopy image_copy_of(const CpuProduct& product, const CpuSplit& split);

// Adds the effects of the choices that divide loops or pack operands (effects.cpp).
void add_split_effects(Space& space, const Graph& group, const Domain& domain, const Machine& machine);

}  // namespace wl

// Lowers one contraction of A (the left operand) and B (the right one) to a CPU kernel, with elementwise work on its
// operands and, as the epilogue, on its result. An atom is one loop of the domain; m, n and k are the atoms of rows,
// columns and the reduction.
//
// A task is one block of the launch. It owns a range of rows (along the last m atom or, where there are several, along
// the one around it) and of column panels (nv vectors along the last n atom) of one batch element. Inside a task,
// columns are walked in blocks of nc, and k in blocks of kc. B is packed (copied) panel by panel with pack_b, or where
// its columns are not contiguous; A is packed in tiles with pack_a, or where it is not an unchanged input. Where B is
// read in place, the micro-kernel does the little elementwise work on it (in_place.h). The micro-kernel holds mr x nv
// vectors of accumulators in registers over a whole block of k. Rows are split evenly, so tiles have at most two
// heights, which differ by one row. The epilogue is computed on the tile while it is in registers or, where that would
// need too many registers, row by row from scratch.
//
// Where the machine multiplies words of narrow elements (dot.h), an iteration of the loop over one k atom takes a word
// of each operand. Packed copies, and copied images, consist of words, and an operand in which the elements of a word
// are neighbours is read as it is. With the choice `matrix` an iteration takes several words of each operand and
// multiplies tiles in tile registers (tiles.h); the sums then go through scratch, from which the epilogue reads them
// row by row. With `widen` nothing is multiplied as words: packed elements are f32, and rows of words that lie in
// memory, as in panels of weights, are read in place and unpacked in registers.
//
// Where B is a window that slides over an image (compiler/domain/image.h), packing copies every tap (position in the
// window) separately. With copy_image a block's part of the image is copied once instead, with its padding, as planes
// of rows, and the micro-kernel reads each tap inside the copy. The columns of a panel are then neighbours in the copy,
// so they run on from one image row to the next through the halo (padding) between the rows. Sums for the halo are
// dropped when the tile is stored, row by row.
//
// Where A is such a window, its image is copied in the same way. The rows of a tile are then neighbouring pixels of one
// row of the image. If the image has its channels innermost in memory, so has the copy, and a step to the next pixel
// passes over all channels.
//
// With turn_tiles, rows and columns exchange roles, so the pixels are rows. A tile then consists of neighbouring pixels
// of one image row times vectors along the axis that the other operand is contiguous along, so no lane is empty,
// whatever the width of the image. The tile goes through scratch and is transposed in registers, one vector of columns
// at a time, before the epilogue.
//
// Where conditions on indices say which products can change an output (compiler/domain/masks.h), the loop over k of a
// tile, and the packing of an operand, begin with the first such product and end with the last one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/domain/image.h"
#include "compiler/domain/masks.h"
#include "compiler/domain/merged_columns.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/counted.h"
#include "compiler/schedule/contract/dot.h"
#include "compiler/schedule/contract/tiles.h"
#include "compiler/schedule/space.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

class CpuContract {
 public:
  CpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine);
  absl::StatusOr<Kernel> run();

 private:
  struct Side {        // one operand of the contraction
    int position = 0;  // the operand's number in the contraction: 0 or 1
    bool packed = false;
    BufferId buffer = -1;  // the buffer of the operand's packed copy; -1: it has none
    bool direct = false;   // whether the operand is an unchanged input
    // Whether the operand is not packed, and the micro-kernel does elementwise work on each element that it reads.
    bool computed = false;
    bool words = false;  // with dot_: whether the elements of each word are neighbours in memory
    // how the operand's memory is read; with `computed`: the memory of its input that varies along K
    Access access;
  };
  struct Rows {                                              // a group of row tiles of equal height
    int64_t height = 0, step = 0, first_row = 0, count = 0;  // step: the rows from one tile to the next
  };
  struct Panels {  // a group of column panels of equal width
    int64_t width = 0, first_column = 0, count = 0;
  };

  absl::Status prepare();
  absl::Status prepare_rows();
  absl::Status prepare_tiles();
  void prepare_image_rows();
  void prepare_operands();
  void place_block();
  void prepare_columns();
  void prepare_depth();
  void prepare_counted();
  void emit_columns();
  void pack_image(const Place& place, int64_t k_extent);
  void prepare_image();
  void allocate_image();
  void copy_image(const Place& place, int64_t k_extent);
  bool is_inner(AtomId atom) const;
  void open_planes(const Place& place, int64_t k_extent, Place& at, Affine& offset);
  Affine tap_in_image(const std::vector<Affine>& turns);
  Affine open_taps(VarId var, const Place& place);
  std::vector<Affine> image_rows_left() const;
  std::vector<Affine> outer_rows_left() const;
  std::vector<Affine> columns_left() const;
  void emit_k_blocks(const Place& place);
  // Emits the code of one block of k: first that of packing, then that of all tiles. `resume`: the accumulators begin
  // with the partial results in `partial_`, otherwise with zero. `last`: this is the last block of k, so the epilogue
  // follows.
  void emit_block(const Place& place, int64_t k_extent, bool resume, bool last);
  void emit_tiles(const Place& place, int64_t k_extent, bool resume, bool last);
  // A tile of rows: `at` has the index of its first element along every atom, `row` is its first row among all rows of
  // the block, and `tile` is its number among the block's tiles.
  struct RowTile {
    const Rows& rows;
    Place at;
    Affine row, tile;
  };
  void each_row_tile(const Place& place, const std::function<void(const RowTile&)>& body);
  void emit_micro(const RowTile& at, const Panels& panels, const Place& place, int64_t k_extent, bool resume,
                  bool last);
  void emit_k_loop(const RowTile& row_tile, const Panels& panels, const Place& place, int64_t k_extent, bool last,
                   TileId accumulator);
  // Adds to `accumulator` the products of each element of the words in `b` and the packed f32 element of the left
  // operand (choice widen). `turns`: the iteration number of each loop over k.
  void multiply_parts(const RowTile& row_tile, const std::vector<Affine>& turns, TileId b, TileId accumulator);
  // Emits the loops over k of a tile in tile registers (`tiles_`). `accumulator` has the layout of tile_layout().
  void multiply_tiles(const RowTile& row_tile, const Panels& panels, const Place& place, int64_t k_extent,
                      TileId accumulator);
  Layout tile_layout(int64_t height, int64_t width) const;
  // has_masks: whether conditions of a region limit loop number `k` over K. iterations_that_count: the iterations of
  // that loop with products that can change an output, for a tile of `rows` x `columns` that begins at `place`.
  bool has_masks(const Region& region, size_t k) const;
  Iterations iterations_that_count(const Region& region, size_t k, const Place& place, int64_t rows, int64_t columns,
                                   int64_t k_extent);
  Iterations packed_iterations(const Place& place, AtomId along, int64_t width, int64_t k_extent);
  // Reads one row of a panel of the right operand at the loop indices `at`. `turns`: the iteration number of each loop
  // over k.
  TileId read_right(const RowTile& row_tile, const Panels& panels, const Place& at, const std::vector<Affine>& turns,
                    bool last);
  TileId compute_right(const RowTile& row_tile, const Panels& panels, const Place& at, bool last);
  void read(const Side& side, TileId result, Slice from);
  void fetch_ahead(TileId b, const Slice& from);
  void fetch_next(const RowTile& row_tile, const Panels& panels, Place at, bool last);
  Affine turn_in_block(const std::vector<Affine>& turns) const;
  DType operand_dtype(const Side& side) const {
    return group_.nodes[group_.nodes[domain_.contract].operands[side.position]].dtype;
  }
  // The dtype of the tiles into which micro-kernels read an operand.
  DType read_dtype(const Side& side) const { return side.packed || dot_ ? packed_dtype(side) : operand_dtype(side); }
  // A part of a tile whose results are stored: `width` neighbouring columns, from column `from` of the tile on. `at`
  // is the place of its first element. Only columns inside `bound` (as in TileExpr) exist.
  struct Stored {
    Place at;
    Affine from;
    int64_t width;
    std::vector<std::vector<Affine>> bound;
  };
  void emit_epilogue(const Rows& rows, const Panels& panels, const Place& place, TileId accumulator);
  Stored open_image_row(const Panels& panels, const Place& place);
  void emit_stores(const Rows& rows, Stored part, TileId accumulator);
  void emit_turned(const Rows& rows, const Panels& panels, const Place& place);
  void emit_turned_vector(int64_t height, int64_t columns, const Affine& first, Place place);
  // Computes the outputs from `value`, which holds the sums of `height` x `width` elements from `at` on, and stores
  // them. `layout`: as in TileExpr.
  void store_results(const Place& at, int64_t height, int64_t width, std::vector<std::vector<Affine>> bound,
                     TileId value, std::function<Layout(const std::vector<bool>&)> layout = nullptr);
  void pack(const Side& side, const Domain& domain, const Place& place, int64_t k_extent, AtomId along, int64_t width,
            int lanes, Affine offset, int64_t pitch, std::vector<std::vector<Affine>> bound);
  // Packs an operand as words of narrow elements (dot_).
  void pack_words(const Side& side, const Domain& domain, const Place& place, int64_t k_extent, AtomId along,
                  int64_t width, int lanes, Affine offset, int64_t pitch,
                  const std::vector<std::vector<Affine>>& bound);
  void each_word(VarId var, int64_t elements, const std::function<void(const Affine&, int64_t)>& body);
  void store_words(const Side& side, const TileExpr& first, int64_t elements, Affine offset, int64_t pitch);
  // step_of: the number of elements along K that one iteration of loop number `k` over K takes. turns_of: the number of
  // iterations that cover `extent` elements.
  int64_t step_of(size_t k) const { return dot_ && dot_->k_atom == k_atoms_[k] ? dot_->group : 1; }
  int64_t turns_of(size_t k, int64_t extent) const { return (extent + step_of(k) - 1) / step_of(k); }
  // How many words of each operand one iteration of loop number `k` over K takes.
  int64_t words_of_turn(size_t k) const { return tiles_ && tiles_->atom == k_atoms_[k] ? tiles_->words : 1; }
  int64_t turns_of(size_t k) const { return turns_of(k, domain_.atoms[k_atoms_[k]].extent); }
  // The number of iterations of all loops over K in one block of K.
  int64_t depth() const { return k_atoms_.empty() ? 1 : turns_of(0, k_block_) * k_inner_; }
  bool widens() const { return dot_ && dot_->widened; }
  int64_t left_depth() const { return widens() ? depth() * dot_->group : depth(); }
  DType packed_dtype(const Side& side) const { return dot_ && !(widens() && &side == &a_) ? DType::u32 : dtype_; }
  // The distance in elements between neighbouring rows or columns of a packed operand.
  int64_t element_pitch(const Side& side) const { return tiles_ && &side == &a_ ? depth() : 1; }
  // packs_squares: whether a sliver (the rows or columns of one tile) of an operand is packed in squares that are
  // transposed in registers. pack_squares: emits the code that packs it so.
  bool packs_squares(const Side& side, AtomId along, int64_t depth, int64_t width, int lanes) const;
  void pack_squares(const Side& side, const Place& at, AtomId along, int64_t depth, int64_t width, int lanes,
                    const Affine& offset, int64_t pitch);
  // Computes an operand at the place of `expr` and stores it to the operand's packed copy, from element `offset` on.
  // `pitch`: the distance in the copy between indices along the tile's first axis, in elements.
  void store_packed(const Side& side, TileExpr expr, Affine offset, int64_t pitch);
  void store_tile(const Side& side, TileId value, Affine offset, int64_t pitch);
  void split_panels(int64_t columns);
  bool splits_whole_row() const;
  void split_whole_row();
  std::vector<Affine> panel_trips(const Panels& panels) const;
  Affine column_of(const Panels& panels) const { return affine(panel_var_, panels.width, panels.first_column); }
  void place_panel(const Panels& panels, Place& place, int64_t behind = 0);
  std::vector<std::vector<Affine>> column_bound(const Panels& panels, const Place& place) const;
  bool heavy_epilogue() const;
  // Whether an image's pixels are the contraction's rows. They are with turn_tiles, and if the left operand's image is
  // copied.
  bool rows_are_pixels() const { return turned_.has_value() || slides_on_rows_; }
  bool columns_are_pixels() const { return height_ >= 0 && !rows_are_pixels(); }
  Side& image_side() { return rows_are_pixels() ? a_ : b_; }
  int64_t turns_in_image(size_t k) const;
  // The number of rows of a block's partial results, over all iterations of the loop around the last row atom.
  int64_t partial_rows() const { return (tiles_ ? row_tiles_ * mr_ : rows_per_task_) * outer_rows_per_block_; }
  void fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const Graph& group_;
  std::optional<Domain> turned_;  // with turn_tiles: the domain with rows and columns exchanged
  const Domain& whole_;
  std::optional<Image> image_;      // with copy_image: the image that is copied
  bool slides_on_rows_ = false;     // whether turn_tiles is off and image_ is the image of the left operand
  std::optional<Dot> dot_;          // how words of narrow elements are multiplied; nullopt: they are not
  std::optional<TileSteps> tiles_;  // the steps along K in tile registers, with the choice `matrix`
  std::optional<MergedColumns> merged_;
  std::optional<Guard> zeros_;  // with skip_padding: the guard of the image's rows, which holds outside the padding
  const Domain& domain_;        // the domain with pixels as columns if merged_ is set, else whole_
  Region counted_;              // the conditions on indices under which a product can change an output
  const Schedule& schedule_;
  const Machine& machine_;
  KernelBuilder out_;
  absl::Status status_;
  DType dtype_ = DType::f32;  // dtype of the accumulators, and of packed operands that do not consist of words
  int lanes_ = 1;
  AtomId row_atom_ = -1, column_atom_ = -1;  // the last atom of the rows, and of the columns; -1: there is none
  std::vector<AtomId> k_atoms_;
  int64_t rows_total_ = 1, columns_total_ = 1;
  int64_t mr_ = 1, nr_ = 1;  // the largest numbers of rows and of columns of a tile
  int64_t row_tasks_ = 1, column_tasks_ = 1, rows_per_task_ = 1;
  // The loop around the last row atom; -1: there is none. This loop runs inside a task, so that all its iterations
  // share one copy of the right operand, or of the image.
  AtomId outer_row_atom_ = -1;
  int64_t outer_rows_ = 1, outer_rows_per_task_ = 1, outer_rows_per_block_ = 1, row_tiles_ = 1;
  Affine first_outer_row_;
  VarId outer_row_var_ = -1;
  int64_t panels_per_column_atom_ = 1, panels_ = 1, panels_per_task_ = 1, panels_per_block_ = 1;
  int64_t k_block_ = 1, k_blocks_ = 1;  // elements along k_atoms_[0] in a block of K; number of such blocks
  int64_t k_inner_ = 1;                 // product of the numbers of iterations of all loops over K except k_atoms_[0]
  // The atoms of an image's rows and of the pixels of a row; -1: there are none. They are set if merged_ is set, and if
  // the image of image_ or turned_ has rows. A task computes some rows of the image, in blocks of several rows, and a
  // block packs or copies its part of the image.
  AtomId height_ = -1, width_ = -1;
  // Distances in a copied image, in elements: from one position of a row to the next, from one row to the next and, for
  // each k atom, from one plane to the next.
  int64_t position_pitch_ = 1, row_pitch_ = 1;
  std::vector<int64_t> plane_pitches_;
  int64_t image_width_ = 1, image_height_ = 1, image_rows_per_task_ = 1, image_rows_per_block_ = 1;
  Affine first_image_row_;
  VarId image_row_var_ = -1;
  int64_t pitch_ = 1;  // distance in the packed right operand from one k to the next, in elements
  std::vector<Rows> row_groups_;
  // A block's panels in groups of equal width. There are several groups if an even split of the columns gives panels of
  // different widths.
  std::vector<Panels> panel_groups_;
  int64_t columns_per_block_ = 1;  // number of columns in all panels of a block
  Side a_, b_;
  BufferId partial_ = -1, spill_ = -1;
  bool heavy_ = false;  // whether the epilogue reads the sums of a tile from scratch, row by row
  Place block_place_;
  Affine first_row_, first_panel_;
  VarId panel_block_var_ = -1, panel_var_ = -1, k_block_var_ = -1, tile_var_ = -1;
  std::vector<VarId> k_vars_;
};

}  // namespace wl

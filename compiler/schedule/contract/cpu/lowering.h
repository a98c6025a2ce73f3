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
#include <vector>

#include "compiler/domain/masks.h"
#include "compiler/schedule/contract/counted.h"
#include "compiler/schedule/contract/cpu/product.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

class CpuContract {
 public:
  CpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine);
  absl::StatusOr<Kernel> run();

 private:
  absl::Status prepare();
  void allocate();
  void place_block();
  void prepare_counted();
  void emit_columns();
  void pack_image(const Place& place, int64_t k_extent);
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
    const CpuSplit::Rows& rows;
    Place at;
    Affine row, tile;
  };
  void each_row_tile(const Place& place, const std::function<void(const RowTile&)>& body);
  void emit_micro(const RowTile& at, const CpuSplit::Panels& panels, const Place& place, int64_t k_extent, bool resume,
                  bool last);
  void emit_k_loop(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& place, int64_t k_extent,
                   bool last, TileId accumulator);
  // Adds to `accumulator` the products of each element of the words in `b` and the packed f32 element of the left
  // operand (choice widen). `turns`: the iteration number of each loop over k.
  void multiply_parts(const RowTile& row_tile, const std::vector<Affine>& turns, TileId b, TileId accumulator);
  // Emits the loops over k of a tile in tile registers (`product_.tiles`). `accumulator` has the layout of
  // tile_layout().
  void multiply_tiles(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& place, int64_t k_extent,
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
  TileId read_right(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& at,
                    const std::vector<Affine>& turns, bool last);
  TileId compute_right(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& at, bool last);
  void read(const CpuSide& side, TileId result, Slice from);
  void fetch_ahead(TileId b, const Slice& from);
  void fetch_next(const RowTile& row_tile, const CpuSplit::Panels& panels, Place at, bool last);
  Affine turn_in_block(const std::vector<Affine>& turns) const;
  // A part of a tile whose results are stored: `width` neighbouring columns, from column `from` of the tile on. `at`
  // is the place of its first element. Only columns inside `bound` (as in TileExpr) exist.
  struct Stored {
    Place at;
    Affine from;
    int64_t width;
    std::vector<std::vector<Affine>> bound;
  };
  void emit_epilogue(const CpuSplit::Rows& rows, const CpuSplit::Panels& panels, const Place& place,
                     TileId accumulator);
  Stored open_image_row(const CpuSplit::Panels& panels, const Place& place);
  void emit_stores(const CpuSplit::Rows& rows, Stored part, TileId accumulator);
  void emit_turned(const CpuSplit::Rows& rows, const CpuSplit::Panels& panels, const Place& place);
  void emit_turned_vector(int64_t height, int64_t columns, const Affine& first, Place place);
  // Computes the outputs from `value`, which holds the sums of `height` x `width` elements from `at` on, and stores
  // them. `layout`: as in TileExpr.
  void store_results(const Place& at, int64_t height, int64_t width, std::vector<std::vector<Affine>> bound,
                     TileId value, std::function<Layout(const std::vector<bool>&)> layout = nullptr);
  void pack(const CpuSide& side, const Domain& domain, const Place& place, int64_t k_extent, AtomId along,
            int64_t width, int lanes, Affine offset, int64_t pitch, std::vector<std::vector<Affine>> bound);
  // Packs an operand as words of narrow elements (product_.dot).
  void pack_words(const CpuSide& side, const Domain& domain, const Place& place, int64_t k_extent, AtomId along,
                  int64_t width, int lanes, Affine offset, int64_t pitch,
                  const std::vector<std::vector<Affine>>& bound);
  void each_word(VarId var, int64_t elements, const std::function<void(const Affine&, int64_t)>& body);
  void store_words(const CpuSide& side, const TileExpr& first, int64_t elements, Affine offset, int64_t pitch);
  // The distance in elements between neighbouring rows or columns of a packed operand.
  int64_t element_pitch(const CpuSide& side) const { return product_.tiles && &side == &product_.a ? split_.depth : 1; }
  // packs_squares: whether a sliver (the rows or columns of one tile) of an operand is packed in squares that are
  // transposed in registers. pack_squares: emits the code that packs it so.
  bool packs_squares(const CpuSide& side, AtomId along, int64_t depth, int64_t width, int lanes) const;
  void pack_squares(const CpuSide& side, const Place& at, AtomId along, int64_t depth, int64_t width, int lanes,
                    const Affine& offset, int64_t pitch);
  // Computes an operand at the place of `expr` and stores it to the operand's packed copy, from element `offset` on.
  // `pitch`: the distance in the copy between indices along the tile's first axis, in elements.
  void store_packed(const CpuSide& side, TileExpr expr, Affine offset, int64_t pitch);
  void store_tile(const CpuSide& side, TileId value, Affine offset, int64_t pitch);
  std::vector<Affine> panel_trips(const CpuSplit::Panels& panels) const;
  Affine column_of(const CpuSplit::Panels& panels) const {
    return affine(panel_var_, panels.width, panels.first_column);
  }
  void place_panel(const CpuSplit::Panels& panels, Place& place, int64_t behind = 0);
  std::vector<std::vector<Affine>> column_bound(const CpuSplit::Panels& panels, const Place& place) const;
  // The number of rows of a block's partial results, over all iterations of the loop around the last row atom.
  int64_t partial_rows() const {
    return (product_.tiles ? split_.row_tiles * split_.mr : split_.rows_per_task) * split_.outer_rows_per_block;
  }
  BufferId buffer_of(const CpuSide& side) const { return &side == &product_.a ? a_buffer_ : b_buffer_; }
  BufferId& image_buffer() { return product_.rows_are_pixels() ? a_buffer_ : b_buffer_; }
  void fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  CpuProduct product_;
  CpuLoops loops_;
  CpuSplit split_;
  CpuImageCopy copy_;  // with copy_image
  Region counted_;     // the conditions on indices under which a product can change an output
  const Schedule& schedule_;
  KernelBuilder out_;
  absl::Status status_;
  Affine first_outer_row_, first_image_row_, first_row_, first_panel_;
  Place block_place_;
  VarId outer_row_var_ = -1, image_row_var_ = -1, panel_block_var_ = -1, panel_var_ = -1, k_block_var_ = -1,
        tile_var_ = -1;
  std::vector<VarId> k_vars_;
  int64_t pitch_ = 1;  // distance in the packed right operand from one k to the next, in elements
  // The operands' packed copies (-1: there is none), the partial results of blocks of K, and the sums of a tile.
  BufferId a_buffer_ = -1, b_buffer_ = -1, partial_ = -1, spill_ = -1;
  bool heavy_ = false;  // whether the epilogue reads the sums of a tile from scratch, row by row
};

}  // namespace wl

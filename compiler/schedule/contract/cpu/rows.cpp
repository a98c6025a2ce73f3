// The rows of a contraction on a CPU: the loops over them, and how tiles with exchanged rows and
// columns (turn_tiles) are stored.
#include <algorithm>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {

// Returns trip counts, for this block, of the loop around the last row atom; the smallest of them is the number of
// iterations.
std::vector<Affine> CpuContract::outer_rows_left() const {
  if (product_.rows_are_pixels()) return image_rows_left();
  std::vector<Affine> rows = {fixed(split_.outer_rows_per_task)};
  if (loops_.outer_rows % split_.outer_rows_per_task != 0)
    rows.push_back(sum(fixed(loops_.outer_rows), first_outer_row_, -1));
  return rows;
}

// Opens loops over the tiles of a block's rows, one loop for each height of tiles, and calls the body inside each loop.
void CpuContract::each_row_tile(const Place& place, const std::function<void(const RowTile&)>& body) {
  const bool loops = product_.outer_row_atom >= 0;
  Place at = place;
  if (loops) {
    out_.open_loop(outer_row_var_, outer_rows_left());
    at[product_.outer_row_atom] =
        sum(product_.rows_are_pixels() ? first_image_row_ : first_outer_row_, affine(outer_row_var_));
  }
  int64_t tiles = 0;
  for (const CpuSplit::Rows& rows : split_.row_groups) {
    out_.open_loop(tile_var_, {fixed(rows.count)});
    Affine row = affine(tile_var_, rows.step, rows.first_row), tile = affine(tile_var_, 1, tiles);
    if (product_.row_atom >= 0) at[product_.row_atom] = sum(first_row_, row);
    if (loops) {
      row.add(outer_row_var_, split_.rows_per_task);
      tile.add(outer_row_var_, split_.row_tiles);
    }
    body({rows, at, std::move(row), std::move(tile)});
    out_.close_loop();
    tiles += rows.count;
  }
  if (loops) out_.close_loop();
}

// Computes the outputs from a tile of sums in scratch and stores them (turn_tiles). The tile is transposed in
// registers, one vector of columns at a time.
void CpuContract::emit_turned(const CpuSplit::Rows& rows, const CpuSplit::Panels& panels, const Place& place) {
  const int64_t columns = std::min(panels.width, product_.columns - panels.first_column);
  const int64_t full = columns / product_.lanes, rest = columns % product_.lanes;
  if (full > 0) {
    const VarId vector = out_.loop_var("vector");
    out_.open_loop(vector, {fixed(full)});
    emit_turned_vector(rows.height, product_.lanes, affine(vector, product_.lanes), place);
    out_.close_loop();
  }
  if (rest > 0) emit_turned_vector(rows.height, rest, fixed(full * product_.lanes), place);
}

// Does the work of emit_turned() for `columns` neighbouring columns, at most one vector of them; `first` is the index
// of the first of them in the tile.
void CpuContract::emit_turned_vector(int64_t height, int64_t columns, const Affine& first, Place place) {
  place[product_.column_atom] = sum(std::move(place[product_.column_atom]), first);
  Slice slice;
  slice.buffer = spill_;
  slice.offset = first;
  slice.strides = {split_.nr, 1};
  const TileId computed = out_.tile(product_.dtype, {height, columns}, 1, product_.lanes);
  out_.push(load_instr(computed, std::move(slice)));
  const auto layout = [=, lanes = product_.lanes](const std::vector<bool>& moves) {
    return cpu_layout({moves[0] ? height : 1, moves[1] ? columns : 1}, moves[0] ? 0 : -1, moves[0] ? lanes : 1);
  };
  Instr convert;
  convert.op = InstrOp::kConvert;
  convert.result = out_.tile({product_.dtype, layout({true, true}), {}});
  convert.args = {computed};
  const TileId value = convert.result;
  out_.push(std::move(convert));
  store_results(place, height, columns, {}, value, layout);
}

}  // namespace wl

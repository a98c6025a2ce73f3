// The rows of a contraction on a CPU: how they are divided, the loops over them, and how tiles with exchanged rows and
// columns (turn_tiles) are stored.
#include <algorithm>

#include "compiler/schedule/contract/cpu.h"

namespace wl {

// Splits the rows into tasks, and the rows of a task into tiles. InvalidArgument where the tasks would not be equal.
absl::Status CpuContract::prepare_rows() {
  row_tasks_ = schedule_[kRowTasks];
  if (domain_.m.size() > 1) outer_row_atom_ = domain_.m[domain_.m.size() - 2];
  rows_per_task_ = rows_total_;
  if (outer_row_atom_ >= 0) {
    outer_rows_ = domain_.atoms[outer_row_atom_].extent;
    outer_rows_per_task_ = (outer_rows_ + row_tasks_ - 1) / row_tasks_;
    row_tasks_ = (outer_rows_ + outer_rows_per_task_ - 1) / outer_rows_per_task_;
    outer_rows_per_block_ = outer_rows_per_task_;
  } else {
    if (rows_total_ % row_tasks_ != 0)
      return invalid(rows_total_, " rows do not split into ", row_tasks_, " equal tasks");
    rows_per_task_ /= row_tasks_;
  }
  mr_ = std::min(schedule_[kMr], rows_per_task_);
  row_tiles_ = (rows_per_task_ + mr_ - 1) / mr_;
  const int64_t base = rows_per_task_ / row_tiles_, more = rows_per_task_ % row_tiles_;
  if (more > 0) row_groups_.push_back({base + 1, base + 1, 0, more});
  // Tiles in tile registers must all have the same height. If the rows do not divide evenly, the last tiles would be
  // one row shorter, so each begins one row earlier and computes the last row of the preceding tile again.
  const int64_t again = tiles_ && more > 0 ? 1 : 0;
  row_groups_.push_back({base + again, base, more * (base + 1) - again, row_tiles_ - more});
  mr_ = row_groups_[0].height;
  return absl::OkStatus();
}

// Returns trip counts, for this block, of the loop around the last row atom; the smallest of them is the number of
// iterations.
std::vector<Affine> CpuContract::outer_rows_left() const {
  if (rows_are_pixels()) return image_rows_left();
  std::vector<Affine> rows = {fixed(outer_rows_per_task_)};
  if (outer_rows_ % outer_rows_per_task_ != 0) rows.push_back(sum(fixed(outer_rows_), first_outer_row_, -1));
  return rows;
}

// Opens loops over the tiles of a block's rows, one loop for each height of tiles, and calls the body inside each loop.
void CpuContract::each_row_tile(const Place& place, const std::function<void(const RowTile&)>& body) {
  const bool loops = outer_row_atom_ >= 0;
  Place at = place;
  if (loops) {
    out_.open_loop(outer_row_var_, outer_rows_left());
    at[outer_row_atom_] = sum(rows_are_pixels() ? first_image_row_ : first_outer_row_, affine(outer_row_var_));
  }
  int64_t tiles = 0;
  for (const Rows& rows : row_groups_) {
    out_.open_loop(tile_var_, {fixed(rows.count)});
    Affine row = affine(tile_var_, rows.step, rows.first_row), tile = affine(tile_var_, 1, tiles);
    if (row_atom_ >= 0) at[row_atom_] = sum(first_row_, row);
    if (loops) {
      row.add(outer_row_var_, rows_per_task_);
      tile.add(outer_row_var_, row_tiles_);
    }
    body({rows, at, std::move(row), std::move(tile)});
    out_.close_loop();
    tiles += rows.count;
  }
  if (loops) out_.close_loop();
}

// Computes the outputs from a tile of sums in scratch and stores them (turn_tiles). The tile is transposed in
// registers, one vector of columns at a time.
void CpuContract::emit_turned(const Rows& rows, const Panels& panels, const Place& place) {
  const int64_t columns = std::min(panels.width, columns_total_ - panels.first_column);
  const int64_t full = columns / lanes_, rest = columns % lanes_;
  if (full > 0) {
    const VarId vector = out_.loop_var("vector");
    out_.open_loop(vector, {fixed(full)});
    emit_turned_vector(rows.height, lanes_, affine(vector, lanes_), place);
    out_.close_loop();
  }
  if (rest > 0) emit_turned_vector(rows.height, rest, fixed(full * lanes_), place);
}

// Does the work of emit_turned() for `columns` neighbouring columns, at most one vector of them; `first` is the index
// of the first of them in the tile.
void CpuContract::emit_turned_vector(int64_t height, int64_t columns, const Affine& first, Place place) {
  place[column_atom_] = sum(std::move(place[column_atom_]), first);
  Slice slice;
  slice.buffer = spill_;
  slice.offset = first;
  slice.strides = {nr_, 1};
  const TileId computed = out_.tile(dtype_, {height, columns}, 1, lanes_);
  out_.push(load_instr(computed, std::move(slice)));
  const auto layout = [=, lanes = lanes_](const std::vector<bool>& moves) {
    return cpu_layout({moves[0] ? height : 1, moves[1] ? columns : 1}, moves[0] ? 0 : -1, moves[0] ? lanes : 1);
  };
  Instr convert;
  convert.op = InstrOp::kConvert;
  convert.result = out_.tile({dtype_, layout({true, true}), {}});
  convert.args = {computed};
  const TileId value = convert.result;
  out_.push(std::move(convert));
  store_results(place, height, columns, {}, value, layout);
}

}  // namespace wl

// The loop nest of a contraction on a CPU, from the task down to the micro-kernel and the epilogue.
#include <algorithm>

#include "compiler/schedule/contract/cpu.h"

namespace wl {
void CpuContract::emit_columns() {
  const auto blocks = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  const int64_t count =
      height_ >= 0 ? blocks(image_rows_per_task_, image_rows_per_block_) : blocks(panels_per_task_, panels_per_block_);
  if (count > 1) {
    panel_block_var_ = out_.loop_var("panel_block");
    std::vector<Affine> trips = {fixed(count)};
    if (height_ >= 0 && image_height_ % image_rows_per_task_ != 0) {
      const Affine left = sum(fixed(image_height_ + image_rows_per_block_ - 1), first_image_row_, -1);
      trips.push_back(affine(out_.derived("blocks", {left}, image_rows_per_block_)));
    }
    out_.open_loop(panel_block_var_, std::move(trips));
    if (height_ < 0) first_panel_.add(panel_block_var_, panels_per_block_);
    first_image_row_.add(panel_block_var_, image_rows_per_block_);
  }
  for (AtomId a : k_atoms_) k_vars_.push_back(out_.loop_var(domain_.atoms[a].name));
  panel_var_ = out_.loop_var("panel");
  tile_var_ = out_.loop_var("tile");
  if (height_ >= 0) image_row_var_ = out_.loop_var("image_row");
  if (outer_row_atom_ >= 0) outer_row_var_ = rows_are_pixels() ? image_row_var_ : out_.loop_var("outer_row");
  emit_k_blocks(block_place_);
  if (count > 1) out_.close_loop();
}

// Returns upper bounds of the number of columns (pixels) of an image in this block. The smallest of them is the exact
// number, which is at least 1.
std::vector<Affine> CpuContract::columns_left() const {
  std::vector<Affine> left = {fixed(image_rows_per_block_ * image_width_)};
  if (image_rows_per_task_ % image_rows_per_block_ != 0)
    left.push_back(
        affine(panel_block_var_, -image_rows_per_block_ * image_width_, image_rows_per_task_ * image_width_));
  if (image_height_ % image_rows_per_task_ != 0 || image_rows_per_task_ % image_rows_per_block_ != 0)
    left.push_back(sum(fixed(columns_total_), first_image_row_, -image_width_));
  return left;
}

// Returns trip counts of the loop over the panels of this block; the smallest of them is the number of iterations.
std::vector<Affine> CpuContract::panel_trips(const Panels& panels) const {
  std::vector<Affine> trips = {fixed(panels.count)};
  if (columns_are_pixels()) return trips;
  if (panel_block_var_ >= 0 && panels_per_task_ % panels_per_block_ != 0)
    trips.push_back(affine(panel_block_var_, -panels_per_block_, panels_per_task_));
  if (panels_ % panels_per_task_ != 0 || (panel_block_var_ >= 0 && panels_ % panels_per_block_ != 0))
    trips.push_back(sum(fixed(panels_), first_panel_, -1));
  return trips;
}

// Sets `place` to the first column of a panel, or of the panel that comes `behind` panels later: its indices along the
// outer n atoms, and its first column along the last n atom.
void CpuContract::place_panel(const Panels& panels, Place& place, int64_t behind) {
  // Where columns are pixels of an image, no place is set here: open_image_row() sets it when a tile is stored.
  if (image_ && columns_are_pixels()) return;
  if (merged_) {
    place[column_atom_] = sum(column_of(panels), first_image_row_, image_width_);
    return;
  }
  if (panel_groups_.size() > 1) {
    place[column_atom_] = column_of(panels);
    return;
  }
  const Affine panel = sum(first_panel_, affine(panel_var_, 1, behind));
  int64_t inside = panels_per_column_atom_;
  const bool alone = domain_.n.size() <= 1;
  if (column_atom_ >= 0 && panels_per_column_atom_ > 1) {
    const Affine index = alone ? panel : affine(out_.derived("column", {panel}, 1, inside));
    place[column_atom_] = sum(fixed(0), index, nr_);
  }
  for (size_t i = domain_.n.size(); i-- > 0;) {
    const AtomId a = domain_.n[i];
    if (a == column_atom_) continue;
    place[a] = affine(out_.derived(domain_.atoms[a].name, {panel}, inside, i == 0 ? 0 : domain_.atoms[a].extent));
    inside *= domain_.atoms[a].extent;
  }
}

std::vector<std::vector<Affine>> CpuContract::column_bound(const Panels& panels, const Place& place) const {
  if (image_ && columns_are_pixels()) return {};
  if (merged_) {
    std::vector<Affine> left = columns_left();
    if (left.size() == 1 && image_rows_per_block_ * image_width_ == columns_per_block_) return {};
    for (Affine& columns : left) columns = sum(std::move(columns), column_of(panels), -1);
    return {{}, std::move(left)};
  }
  if (column_atom_ < 0 || columns_total_ % nr_ == 0) return {};
  if (panel_groups_.size() > 1 && panels.first_column + panels.count * panels.width <= columns_total_) return {};
  return {{}, {sum(fixed(columns_total_), place[column_atom_], -1)}};
}

// Returns upper bounds of the number of image rows in this block. The smallest of them is the exact number.
std::vector<Affine> CpuContract::image_rows_left() const {
  std::vector<Affine> rows = {fixed(image_rows_per_block_)};
  if (image_rows_per_task_ % image_rows_per_block_ != 0)
    rows.push_back(affine(panel_block_var_, -image_rows_per_block_, image_rows_per_task_));
  if (image_height_ % image_rows_per_task_ != 0 || image_rows_per_task_ % image_rows_per_block_ != 0)
    rows.push_back(sum(fixed(image_height_), first_image_row_, -1));
  return rows;
}

// Packs the image rows that this block needs. For each k, neighbouring pixels are neighbours in the packed copy.
void CpuContract::pack_image(const Place& place, int64_t k_extent) {
  out_.open_loop(image_row_var_, image_rows_left());
  Place at = place;
  at[merged_->height] = sum(first_image_row_, affine(image_row_var_));
  at[merged_->width] = fixed(0);
  pack(b_, whole_, at, k_extent, merged_->width, image_width_, image_width_ > 1 ? machine_.target->lanes : 1,
       affine(image_row_var_, image_width_), pitch_, {});
  out_.close_loop();
}

void CpuContract::emit_k_blocks(const Place& place) {
  const int64_t k0 = k_atoms_.empty() ? 1 : domain_.atoms[k_atoms_[0]].extent;
  if (k_blocks_ > 1) {
    // Partial results begin at zero.
    const TileId zero = out_.tile(dtype_, {partial_rows(), columns_per_block_}, 1, lanes_);
    out_.push(constant_instr(zero, dtype_, 0));
    Slice all;
    all.buffer = partial_;
    all.strides = {columns_per_block_, 1};
    out_.push(store_instr(zero, all, false));
    k_block_var_ = out_.loop_var("k_block");
    out_.open_loop(k_block_var_, {fixed(k_blocks_ - 1)});
    Place inner = place;
    inner[k_atoms_[0]] = affine(k_block_var_, k_block_);
    emit_block(inner, k_block_, true, false);
    out_.close_loop();
  }
  Place last = place;
  const int64_t begin = (k_blocks_ - 1) * k_block_;
  if (!k_atoms_.empty()) last[k_atoms_[0]] = fixed(begin);
  emit_block(last, k0 - begin, k_blocks_ > 1, true);
}

void CpuContract::emit_block(const Place& place, int64_t k_extent, bool resume, bool last) {
  if (image_) copy_image(place, k_extent);
  if (merged_) {
    pack_image(place, k_extent);
  } else if (b_.packed && (!image_ || rows_are_pixels())) {
    const Panels& panels = panel_groups_[0];
    out_.open_loop(panel_var_, panel_trips(panels));
    Place at = place;
    place_panel(panels, at);
    pack(b_, domain_, at, k_extent, column_atom_, nr_, lanes_, affine(panel_var_, depth() * nr_), nr_,
         column_bound(panels, at));
    out_.close_loop();
  }
  if (a_.packed && !(image_ && rows_are_pixels())) {
    each_row_tile(place, [&](const RowTile& tile) {
      const int64_t height = tile.rows.height;
      pack(a_, domain_, tile.at, k_extent, row_atom_, height, height > 1 ? machine_.target->lanes : 1,
           sum(fixed(0), tile.tile, left_depth() * mr_), tiles_ ? 1 : mr_, {});
    });
  }
  emit_tiles(place, k_extent, resume, last);
}

// Emits the micro-kernel for every tile of rows and every panel of a block.
void CpuContract::emit_tiles(const Place& place, int64_t k_extent, bool resume, bool last) {
  const bool rows_outside = schedule_[kRowTilesOutermost] == 1;
  const auto each_panel = [&](const auto& body) {
    for (const Panels& panels : panel_groups_) {
      out_.open_loop(panel_var_, panel_trips(panels));
      body(panels);
      out_.close_loop();
    }
  };
  const auto micro = [&](const RowTile& tile, const Panels& panels) {
    Place at = tile.at;
    place_panel(panels, at);
    emit_micro(tile, panels, at, k_extent, resume, last);
  };
  if (rows_outside) {
    each_row_tile(place, [&](const RowTile& tile) { each_panel([&](const Panels& panels) { micro(tile, panels); }); });
  } else {
    each_panel([&](const Panels& panels) { each_row_tile(place, [&](const RowTile& tile) { micro(tile, panels); }); });
  }
}

void CpuContract::emit_micro(const RowTile& at, const Panels& panels, const Place& place, int64_t k_extent, bool resume,
                             bool last) {
  const Rows& rows = at.rows;
  const TileId accumulator = tiles_ ? out_.tile({dtype_, tile_layout(rows.height, panels.width), {}})
                                    : out_.tile(dtype_, {rows.height, panels.width}, lanes_ > 1 ? 1 : -1, lanes_);
  Slice partial;
  partial.buffer = partial_;
  // If two tiles compute the same row (cpu_tiles.cpp), the row has one partial result for each of them.
  partial.offset = sum(column_of(panels), tiles_ ? sum(fixed(0), at.tile, mr_) : at.row, columns_per_block_);
  partial.strides = {columns_per_block_, 1};
  if (resume) {
    out_.push(load_instr(accumulator, partial));
  } else {
    out_.push(fill_instr(accumulator, 0));
  }
  if (tiles_)
    multiply_tiles(at, panels, place, k_extent, accumulator);
  else
    emit_k_loop(at, panels, place, k_extent, last, accumulator);
  if (last) return emit_epilogue(rows, panels, place, accumulator);
  out_.push(store_instr(accumulator, partial, false));
}

void CpuContract::emit_k_loop(const RowTile& row_tile, const Panels& panels, const Place& place, int64_t k_extent,
                              bool last, TileId accumulator) {
  const Rows& rows = row_tile.rows;
  Place at = place;
  std::vector<Affine> turns(k_atoms_.size());
  const auto has_taps = [&](size_t i) { return zeros_ && k_atoms_[i] == image_->height.tap; };
  const auto open = [&](size_t i) {
    if (has_taps(i)) {
      turns[i] = open_taps(k_vars_[i], place);
    } else {
      Iterations counted = iterations_that_count(counted_, i, place, rows.height, panels.width, k_extent);
      out_.open_loop(k_vars_[i], std::move(counted.trips));
      turns[i] = sum(std::move(counted.first), affine(k_vars_[i]));
    }
    at[k_atoms_[i]] = sum(at[k_atoms_[i]], turns[i], step_of(i));
  };
  // Loops whose trip counts vary become the outermost loops over k, because compilers unroll the inner ones, whose trip
  // counts must be fixed.
  for (const bool varies : {true, false})
    for (size_t i = 0; i < k_atoms_.size(); ++i)
      if ((has_taps(i) || has_masks(counted_, i)) == varies) open(i);
  if (widens()) {
    multiply_parts(row_tile, turns, read_right(row_tile, panels, at, turns, last), accumulator);
    for (size_t i = 0; i < k_atoms_.size(); ++i) out_.close_loop();
    return;
  }
  const TileId a = out_.tile(read_dtype(a_), {rows.height, 1}, -1, 1);
  Slice from;
  if (image_ && rows_are_pixels()) {
    from.buffer = a_.buffer;
    from.offset =
        sum(affine(tile_var_, rows.height * position_pitch_, rows.first_row * position_pitch_), tap_in_image(turns));
    if (height_ >= 0) from.offset.add(image_row_var_, row_pitch_);
    from.strides = {position_pitch_, 0};
  } else if (a_.packed) {
    from.buffer = a_.buffer;
    from.offset = sum(sum(fixed(0), row_tile.tile, depth() * mr_), turn_in_block(turns), mr_);
    from.strides = {1, 0};
  } else {
    from = slice_at(out_.input_buffer(a_.access.input), a_.access, at, {row_atom_, -1});
  }
  const TileId b = read_right(row_tile, panels, at, turns, last);
  read(a_, a, std::move(from));
  out_.push(dot_ ? dot_instr(accumulator, operand_dtype(a_), a, operand_dtype(b_), b)
                 : map_instr(accumulator, Op::fma, dtype_, {a, b, accumulator}));
  for (size_t i = 0; i < k_atoms_.size(); ++i) out_.close_loop();
}

void CpuContract::emit_epilogue(const Rows& rows, const Panels& panels, const Place& place, TileId accumulator) {
  if (spill_ >= 0) {
    Slice slice;
    slice.buffer = spill_;
    slice.strides = {nr_, 1};
    out_.push(store_instr(accumulator, slice, false));
  }
  if (turned_) return emit_turned(rows, panels, place);
  if (!image_ || !columns_are_pixels())
    return emit_stores(rows, {place, fixed(0), panels.width, column_bound(panels, place)}, accumulator);
  emit_stores(rows, open_image_row(panels, place), accumulator);
  out_.close_loop();
}

// Computes the outputs of a part of a tile and stores them. The sums are in `accumulator` or, with spill_, in scratch.
void CpuContract::emit_stores(const Rows& rows, Stored part, TileId accumulator) {
  int64_t height = rows.height;
  TileId value = accumulator;
  if (spill_ >= 0) {
    Slice slice;
    slice.buffer = spill_;
    slice.offset = part.from;
    slice.strides = {nr_, 1};
    if (heavy_) {
      const VarId row = out_.loop_var("row");
      out_.open_loop(row, {fixed(rows.height)});
      if (row_atom_ >= 0) part.at[row_atom_] = sum(part.at[row_atom_], affine(row));
      height = 1;
      slice.offset = sum(slice.offset, affine(row, nr_));
    }
    value = out_.tile(dtype_, {height, part.width}, lanes_ > 1 ? 1 : -1, lanes_, part.bound);
    out_.push(load_instr(value, slice));
  }
  store_results(part.at, height, part.width, part.bound, value);
  if (heavy_) out_.close_loop();
}

void CpuContract::store_results(const Place& at, int64_t height, int64_t width, std::vector<std::vector<Affine>> bound,
                                TileId value, std::function<Layout(const std::vector<bool>&)> layout) {
  TileExpr expr{group_, domain_, out_, at, {{row_atom_, height}, {column_atom_, width}}, lanes_, std::move(bound)};
  expr.layout = std::move(layout);
  if (const DType dtype = group_.nodes[domain_.contract].dtype; dtype != dtype_) {
    const TileId result = out_.like(value, dtype);
    expr.code.push_back(copy_instr(result, value, dtype));
    value = result;
  }
  expr.known = {{domain_.contract, value}};
  for (const Domain::Store& store : domain_.stores) {
    const absl::StatusOr<TileId> result = expr.value(store.source);
    if (!result.ok()) return fail(result.status());
    expr.code.push_back(
        store_instr(*result, slice_at(out_.output_buffer(store.output), store.access, expr.place, expr.axes()), false));
  }
  out_.push_all(std::move(expr.code));
}

}  // namespace wl

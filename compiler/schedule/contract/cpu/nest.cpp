// The loop nest of a contraction on a CPU, from the task down to the micro-kernel and the epilogue.
#include <algorithm>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {
void CpuContract::emit_columns() {
  const auto blocks = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  const int64_t count = product_.height >= 0 ? blocks(split_.image_rows_per_task, split_.image_rows_per_block)
                                             : blocks(split_.panels_per_task, split_.panels_per_block);
  if (count > 1) {
    panel_block_var_ = out_.loop_var("panel_block");
    std::vector<Affine> trips = {fixed(count)};
    if (product_.height >= 0 && loops_.image_rows % split_.image_rows_per_task != 0) {
      const Affine left = sum(fixed(loops_.image_rows + split_.image_rows_per_block - 1), first_image_row_, -1);
      trips.push_back(affine(out_.derived("blocks", {left}, split_.image_rows_per_block)));
    }
    out_.open_loop(panel_block_var_, std::move(trips));
    if (product_.height < 0) first_panel_.add(panel_block_var_, split_.panels_per_block);
    first_image_row_.add(panel_block_var_, split_.image_rows_per_block);
  }
  for (AtomId a : product_.k_atoms) k_vars_.push_back(out_.loop_var(product_.domain.atoms[a].name));
  panel_var_ = out_.loop_var("panel");
  tile_var_ = out_.loop_var("tile");
  if (product_.height >= 0) image_row_var_ = out_.loop_var("image_row");
  if (product_.outer_row_atom >= 0)
    outer_row_var_ = product_.rows_are_pixels() ? image_row_var_ : out_.loop_var("outer_row");
  emit_k_blocks(block_place_);
  if (count > 1) out_.close_loop();
}

// Returns upper bounds of the number of columns (pixels) of an image in this block. The smallest of them is the exact
// number, which is at least 1.
std::vector<Affine> CpuContract::columns_left() const {
  std::vector<Affine> left = {fixed(split_.image_rows_per_block * loops_.image_width)};
  if (split_.image_rows_per_task % split_.image_rows_per_block != 0)
    left.push_back(affine(panel_block_var_, -split_.image_rows_per_block * loops_.image_width,
                          split_.image_rows_per_task * loops_.image_width));
  if (loops_.image_rows % split_.image_rows_per_task != 0 ||
      split_.image_rows_per_task % split_.image_rows_per_block != 0)
    left.push_back(sum(fixed(product_.columns), first_image_row_, -loops_.image_width));
  return left;
}

// Returns trip counts of the loop over the panels of this block; the smallest of them is the number of iterations.
std::vector<Affine> CpuContract::panel_trips(const CpuSplit::Panels& panels) const {
  std::vector<Affine> trips = {fixed(panels.count)};
  if (product_.columns_are_pixels()) return trips;
  if (panel_block_var_ >= 0 && split_.panels_per_task % split_.panels_per_block != 0)
    trips.push_back(affine(panel_block_var_, -split_.panels_per_block, split_.panels_per_task));
  if (split_.panels % split_.panels_per_task != 0 ||
      (panel_block_var_ >= 0 && split_.panels % split_.panels_per_block != 0))
    trips.push_back(sum(fixed(split_.panels), first_panel_, -1));
  return trips;
}

// Sets `place` to the first column of a panel, or of the panel that comes `behind` panels later: its indices along the
// outer n atoms, and its first column along the last n atom.
void CpuContract::place_panel(const CpuSplit::Panels& panels, Place& place, int64_t behind) {
  // Where columns are pixels of an image, no place is set here: open_image_row() sets it when a tile is stored.
  if (product_.image && product_.columns_are_pixels()) return;
  if (product_.merged) {
    place[product_.column_atom] = sum(column_of(panels), first_image_row_, loops_.image_width);
    return;
  }
  if (split_.panel_groups.size() > 1) {
    place[product_.column_atom] = column_of(panels);
    return;
  }
  const Affine panel = sum(first_panel_, affine(panel_var_, 1, behind));
  int64_t inside = split_.panels_per_column_atom;
  const bool alone = product_.domain.n.size() <= 1;
  if (product_.column_atom >= 0 && split_.panels_per_column_atom > 1) {
    const Affine index = alone ? panel : affine(out_.derived("column", {panel}, 1, inside));
    place[product_.column_atom] = sum(fixed(0), index, split_.nr);
  }
  for (size_t i = product_.domain.n.size(); i-- > 0;) {
    const AtomId a = product_.domain.n[i];
    if (a == product_.column_atom) continue;
    place[a] = affine(
        out_.derived(product_.domain.atoms[a].name, {panel}, inside, i == 0 ? 0 : product_.domain.atoms[a].extent));
    inside *= product_.domain.atoms[a].extent;
  }
}

std::vector<std::vector<Affine>> CpuContract::column_bound(const CpuSplit::Panels& panels, const Place& place) const {
  if (product_.image && product_.columns_are_pixels()) return {};
  if (product_.merged) {
    std::vector<Affine> left = columns_left();
    if (left.size() == 1 && split_.image_rows_per_block * loops_.image_width == split_.columns_per_block) return {};
    for (Affine& columns : left) columns = sum(std::move(columns), column_of(panels), -1);
    return {{}, std::move(left)};
  }
  if (product_.column_atom < 0 || product_.columns % split_.nr == 0) return {};
  if (split_.panel_groups.size() > 1 && panels.first_column + panels.count * panels.width <= product_.columns)
    return {};
  return {{}, {sum(fixed(product_.columns), place[product_.column_atom], -1)}};
}

// Returns upper bounds of the number of image rows in this block. The smallest of them is the exact number.
std::vector<Affine> CpuContract::image_rows_left() const {
  std::vector<Affine> rows = {fixed(split_.image_rows_per_block)};
  if (split_.image_rows_per_task % split_.image_rows_per_block != 0)
    rows.push_back(affine(panel_block_var_, -split_.image_rows_per_block, split_.image_rows_per_task));
  if (loops_.image_rows % split_.image_rows_per_task != 0 ||
      split_.image_rows_per_task % split_.image_rows_per_block != 0)
    rows.push_back(sum(fixed(loops_.image_rows), first_image_row_, -1));
  return rows;
}

// Packs the image rows that this block needs. For each k, neighbouring pixels are neighbours in the packed copy.
void CpuContract::pack_image(const Place& place, int64_t k_extent) {
  out_.open_loop(image_row_var_, image_rows_left());
  Place at = place;
  at[product_.merged->height] = sum(first_image_row_, affine(image_row_var_));
  at[product_.merged->width] = fixed(0);
  pack(product_.b, product_.whole, at, k_extent, product_.merged->width, loops_.image_width,
       loops_.image_width > 1 ? product_.machine.target->lanes : 1, affine(image_row_var_, loops_.image_width), pitch_,
       {});
  out_.close_loop();
}

void CpuContract::emit_k_blocks(const Place& place) {
  const int64_t k0 = product_.k_atoms.empty() ? 1 : product_.domain.atoms[product_.k_atoms[0]].extent;
  if (split_.k_blocks > 1) {
    // Partial results begin at zero.
    const TileId zero = out_.tile(product_.dtype, {partial_rows(), split_.columns_per_block}, 1, product_.lanes);
    out_.push(constant_instr(zero, product_.dtype, 0));
    Slice all;
    all.buffer = partial_;
    all.strides = {split_.columns_per_block, 1};
    out_.push(store_instr(zero, all, false));
    k_block_var_ = out_.loop_var("k_block");
    out_.open_loop(k_block_var_, {fixed(split_.k_blocks - 1)});
    Place inner = place;
    inner[product_.k_atoms[0]] = affine(k_block_var_, split_.k_block);
    emit_block(inner, split_.k_block, true, false);
    out_.close_loop();
  }
  Place last = place;
  const int64_t begin = (split_.k_blocks - 1) * split_.k_block;
  if (!product_.k_atoms.empty()) last[product_.k_atoms[0]] = fixed(begin);
  emit_block(last, k0 - begin, split_.k_blocks > 1, true);
}

void CpuContract::emit_block(const Place& place, int64_t k_extent, bool resume, bool last) {
  if (product_.image) copy_image(place, k_extent);
  if (product_.merged) {
    pack_image(place, k_extent);
  } else if (product_.b.packed && (!product_.image || product_.rows_are_pixels())) {
    const CpuSplit::Panels& panels = split_.panel_groups[0];
    out_.open_loop(panel_var_, panel_trips(panels));
    Place at = place;
    place_panel(panels, at);
    pack(product_.b, product_.domain, at, k_extent, product_.column_atom, split_.nr, product_.lanes,
         affine(panel_var_, split_.depth * split_.nr), split_.nr, column_bound(panels, at));
    out_.close_loop();
  }
  if (product_.a.packed && !(product_.image && product_.rows_are_pixels())) {
    each_row_tile(place, [&](const RowTile& tile) {
      const int64_t height = tile.rows.height;
      pack(product_.a, product_.domain, tile.at, k_extent, product_.row_atom, height,
           height > 1 ? product_.machine.target->lanes : 1, sum(fixed(0), tile.tile, split_.left_depth * split_.mr),
           product_.tiles ? 1 : split_.mr, {});
    });
  }
  emit_tiles(place, k_extent, resume, last);
}

// Emits the micro-kernel for every tile of rows and every panel of a block.
void CpuContract::emit_tiles(const Place& place, int64_t k_extent, bool resume, bool last) {
  const bool rows_outside = schedule_[kRowTilesOutermost] == 1;
  const auto each_panel = [&](const auto& body) {
    for (const CpuSplit::Panels& panels : split_.panel_groups) {
      out_.open_loop(panel_var_, panel_trips(panels));
      body(panels);
      out_.close_loop();
    }
  };
  const auto micro = [&](const RowTile& tile, const CpuSplit::Panels& panels) {
    Place at = tile.at;
    place_panel(panels, at);
    emit_micro(tile, panels, at, k_extent, resume, last);
  };
  if (rows_outside) {
    each_row_tile(
        place, [&](const RowTile& tile) { each_panel([&](const CpuSplit::Panels& panels) { micro(tile, panels); }); });
  } else {
    each_panel([&](const CpuSplit::Panels& panels) {
      each_row_tile(place, [&](const RowTile& tile) { micro(tile, panels); });
    });
  }
}

void CpuContract::emit_micro(const RowTile& at, const CpuSplit::Panels& panels, const Place& place, int64_t k_extent,
                             bool resume, bool last) {
  const CpuSplit::Rows& rows = at.rows;
  const TileId accumulator = product_.tiles ? out_.tile({product_.dtype, tile_layout(rows.height, panels.width), {}})
                                            : out_.tile(product_.dtype, {rows.height, panels.width},
                                                        product_.lanes > 1 ? 1 : -1, product_.lanes);
  Slice partial;
  partial.buffer = partial_;
  // If two tiles compute the same row (cpu_tiles.cpp), the row has one partial result for each of them.
  partial.offset =
      sum(column_of(panels), product_.tiles ? sum(fixed(0), at.tile, split_.mr) : at.row, split_.columns_per_block);
  partial.strides = {split_.columns_per_block, 1};
  if (resume) {
    out_.push(load_instr(accumulator, partial));
  } else {
    out_.push(fill_instr(accumulator, 0));
  }
  if (product_.tiles)
    multiply_tiles(at, panels, place, k_extent, accumulator);
  else
    emit_k_loop(at, panels, place, k_extent, last, accumulator);
  if (last) return emit_epilogue(rows, panels, place, accumulator);
  out_.push(store_instr(accumulator, partial, false));
}

void CpuContract::emit_k_loop(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& place,
                              int64_t k_extent, bool last, TileId accumulator) {
  const CpuSplit::Rows& rows = row_tile.rows;
  Place at = place;
  std::vector<Affine> turns(product_.k_atoms.size());
  const auto has_taps = [&](size_t i) { return product_.zeros && product_.k_atoms[i] == product_.image->height.tap; };
  const auto open = [&](size_t i) {
    if (has_taps(i)) {
      turns[i] = open_taps(k_vars_[i], place);
    } else {
      Iterations counted = iterations_that_count(counted_, i, place, rows.height, panels.width, k_extent);
      out_.open_loop(k_vars_[i], std::move(counted.trips));
      turns[i] = sum(std::move(counted.first), affine(k_vars_[i]));
    }
    at[product_.k_atoms[i]] = sum(at[product_.k_atoms[i]], turns[i], product_.step_of(i));
  };
  // Loops whose trip counts vary become the outermost loops over k, because compilers unroll the inner ones, whose trip
  // counts must be fixed.
  for (const bool varies : {true, false})
    for (size_t i = 0; i < product_.k_atoms.size(); ++i)
      if ((has_taps(i) || has_masks(counted_, i)) == varies) open(i);
  if (product_.widens()) {
    multiply_parts(row_tile, turns, read_right(row_tile, panels, at, turns, last), accumulator);
    for (size_t i = 0; i < product_.k_atoms.size(); ++i) out_.close_loop();
    return;
  }
  const TileId a = out_.tile(product_.read_dtype(product_.a), {rows.height, 1}, -1, 1);
  Slice from;
  if (product_.image && product_.rows_are_pixels()) {
    from.buffer = a_buffer_;
    from.offset = sum(affine(tile_var_, rows.height * copy_.position_pitch, rows.first_row * copy_.position_pitch),
                      tap_in_image(turns));
    if (product_.height >= 0) from.offset.add(image_row_var_, copy_.row_pitch);
    from.strides = {copy_.position_pitch, 0};
  } else if (product_.a.packed) {
    from.buffer = a_buffer_;
    from.offset = sum(sum(fixed(0), row_tile.tile, split_.depth * split_.mr), turn_in_block(turns), split_.mr);
    from.strides = {1, 0};
  } else {
    from = slice_at(out_.input_buffer(product_.a.access.input), product_.a.access, at, {product_.row_atom, -1});
  }
  const TileId b = read_right(row_tile, panels, at, turns, last);
  read(product_.a, a, std::move(from));
  out_.push(product_.dot
                ? dot_instr(accumulator, product_.operand_dtype(product_.a), a, product_.operand_dtype(product_.b), b)
                : map_instr(accumulator, Op::fma, product_.dtype, {a, b, accumulator}));
  for (size_t i = 0; i < product_.k_atoms.size(); ++i) out_.close_loop();
}

void CpuContract::emit_epilogue(const CpuSplit::Rows& rows, const CpuSplit::Panels& panels, const Place& place,
                                TileId accumulator) {
  if (spill_ >= 0) {
    Slice slice;
    slice.buffer = spill_;
    slice.strides = {split_.nr, 1};
    out_.push(store_instr(accumulator, slice, false));
  }
  if (product_.turned) return emit_turned(rows, panels, place);
  if (!product_.image || !product_.columns_are_pixels())
    return emit_stores(rows, {place, fixed(0), panels.width, column_bound(panels, place)}, accumulator);
  emit_stores(rows, open_image_row(panels, place), accumulator);
  out_.close_loop();
}

// Computes the outputs of a part of a tile and stores them. The sums are in `accumulator` or, with spill_, in scratch.
void CpuContract::emit_stores(const CpuSplit::Rows& rows, Stored part, TileId accumulator) {
  int64_t height = rows.height;
  TileId value = accumulator;
  if (spill_ >= 0) {
    Slice slice;
    slice.buffer = spill_;
    slice.offset = part.from;
    slice.strides = {split_.nr, 1};
    if (heavy_) {
      const VarId row = out_.loop_var("row");
      out_.open_loop(row, {fixed(rows.height)});
      if (product_.row_atom >= 0) part.at[product_.row_atom] = sum(part.at[product_.row_atom], affine(row));
      height = 1;
      slice.offset = sum(slice.offset, affine(row, split_.nr));
    }
    value = out_.tile(product_.dtype, {height, part.width}, product_.lanes > 1 ? 1 : -1, product_.lanes, part.bound);
    out_.push(load_instr(value, slice));
  }
  store_results(part.at, height, part.width, part.bound, value);
  if (heavy_) out_.close_loop();
}

void CpuContract::store_results(const Place& at, int64_t height, int64_t width, std::vector<std::vector<Affine>> bound,
                                TileId value, std::function<Layout(const std::vector<bool>&)> layout) {
  TileExpr expr{product_.group, product_.domain, out_, at, {{product_.row_atom, height}, {product_.column_atom, width}},
                product_.lanes, std::move(bound)};
  expr.layout = std::move(layout);
  if (const DType dtype = product_.group.nodes[product_.domain.contract].dtype; dtype != product_.dtype) {
    const TileId result = out_.like(value, dtype);
    expr.code.push_back(copy_instr(result, value, dtype));
    value = result;
  }
  expr.known = {{product_.domain.contract, value}};
  for (const Domain::Store& store : product_.domain.stores) {
    const absl::StatusOr<TileId> result = expr.value(store.source);
    if (!result.ok()) return fail(result.status());
    expr.code.push_back(
        store_instr(*result, slice_at(out_.output_buffer(store.output), store.access, expr.place, expr.axes()), false));
  }
  out_.push_all(std::move(expr.code));
}

}  // namespace wl

// How the micro-kernel of a contraction on a CPU reads its right operand (B), and how it prefetches B.
#include <utility>

#include "compiler/schedule/contract/cpu.h"

namespace wl {

// Returns the number of the current iteration among all iterations of the loops over k in a packed block. `turns`: the
// iteration number in each loop.
Affine CpuContract::turn_in_block(const std::vector<Affine>& turns) const {
  Affine out;
  for (size_t i = 0; i < k_atoms_.size(); ++i) out = sum(turns[i], out, i == 0 ? 1 : turns_of(i));
  return out;
}

void CpuContract::read(const Side& side, TileId result, Slice from) {
  out_.push(dot_ && !side.packed ? words_instr(result, operand_dtype(side), std::move(from))
                                 : load_instr(result, std::move(from)));
}

TileId CpuContract::read_right(const RowTile& row_tile, const Panels& panels, const Place& at,
                               const std::vector<Affine>& turns, bool last) {
  if (b_.computed) return compute_right(row_tile, panels, at, last);
  const TileId b = out_.tile(read_dtype(b_), {1, panels.width}, lanes_ > 1 ? 1 : -1, lanes_,
                             b_.packed ? std::vector<std::vector<Affine>>() : column_bound(panels, at));
  Slice from;
  if (image_ && !rows_are_pixels()) {
    from.buffer = b_.buffer;
    from.offset = sum(column_of(panels), tap_in_image(turns));
    from.strides = {0, 1};
  } else if (b_.packed) {
    from.buffer = b_.buffer;
    from.offset = sum(merged_ ? column_of(panels) : affine(panel_var_, depth() * nr_), turn_in_block(turns), pitch_);
    from.strides = {0, 1};
  } else {
    from = slice_at(out_.input_buffer(b_.access.input), b_.access, at, {-1, column_atom_});
  }
  if (schedule_[kPrefetch] > 0 && !b_.packed && !k_atoms_.empty()) {
    fetch_next(row_tile, panels, at, last);
    fetch_ahead(b, from);  // the prefetch stands next to the load of `b`, so that both share one loop over vectors
  }
  read(b_, b, std::move(from));
  return b;
}

// Computes a row of a panel of the right operand from inputs in memory, without a packed copy. Every tile of rows
// computes the row again.
TileId CpuContract::compute_right(const RowTile& row_tile, const Panels& panels, const Place& at, bool last) {
  TileExpr expr{group_, domain_, out_, at, {{-1, 1}, {column_atom_, panels.width}}, lanes_, column_bound(panels, at)};
  const absl::StatusOr<TileId> value = expr.operand(domain_.contract, b_.position);
  WL_CHECK(value.ok(), "an operand that is read in place: ", value.status().message());
  if (schedule_[kPrefetch] > 0) {
    fetch_next(row_tile, panels, at, last);
    for (const Instr& instr : expr.code)
      if (instr.op == InstrOp::kLoad && instr.slice.buffer == out_.input_buffer(b_.access.input))
        fetch_ahead(instr.result, instr.slice);
  }
  out_.push_all(std::move(expr.code));
  return *value;
}

// Prefetches a row of the right operand into the L1 cache, as many iterations ahead as the choice `prefetch` says.
// `from`: the slice of memory from which the current iteration loads the row as tile `b`.
void CpuContract::fetch_ahead(TileId b, const Slice& from) {
  size_t innermost = k_atoms_.size() - 1;
  while (innermost > 0 && turns_of(innermost) == 1) --innermost;
  const int64_t elements = step_of(innermost) * b_.access.strides[k_atoms_[innermost]];
  Slice ahead = from;
  ahead.offset = sum(from.offset, fixed(schedule_[kPrefetch] * elements));
  const Tile tile = out_.kernel().tiles[b];
  const int64_t line = kLineBytes / size_of(group_.nodes[b_.access.input].dtype);
  const bool rows_of_lines = tile.layout.vector_axis() == 1 && ahead.strides[1] == 1 && tile.layout.lanes() < line;
  if (!rows_of_lines) return void(out_.push(prefetch_instr(b, std::move(ahead), 1)));
  // A cache line holds several vectors, and one prefetch fetches the whole cache line.
  ahead.strides[1] = line;
  const int64_t lines = (tile.layout.shape[1] + line - 1) / line;
  out_.push(prefetch_instr(out_.tile(tile.dtype, {tile.layout.shape[0], lines}, -1, 1), std::move(ahead), 1));
}

// Prefetches the next panel, or the next block of k of this panel, into the L2 cache while the tiles of rows use the
// current one: each tile prefetches one cache line of every row. `at`: the row that is being read; `last`: this is the
// last block of k.
void CpuContract::fetch_next(const RowTile& row_tile, const Panels& panels, Place at, bool last) {
  const DType dtype = group_.nodes[b_.access.input].dtype;
  const int64_t line = kLineBytes / size_of(dtype), lines = panels.width / line;
  const bool by_depth = schedule_[kRowTilesOutermost] == 1;
  if (dot_ || panel_groups_.size() > 1 || panels.width % line != 0 || row_tiles_ * outer_rows_per_block_ < lines)
    return;
  if (by_depth ? last : panels.count == 1) return;
  if (by_depth)
    at[k_atoms_[0]] = sum(at[k_atoms_[0]], fixed(k_block_));
  else
    place_panel(panels, at, 1);
  const TileId of = out_.tile(dtype, {1, 1}, -1, 1);
  Slice next = slice_at(out_.input_buffer(b_.access.input), b_.access, at, {-1, column_atom_});
  if (lines > 1) next.offset.add(out_.derived("line", {row_tile.tile}, 1, lines), line);
  out_.push(prefetch_instr(of, std::move(next), 2));
}

}  // namespace wl

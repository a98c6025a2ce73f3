// How the micro-kernel of a contraction on a CPU reads its right operand (B), and how it prefetches B.
#include <utility>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {

// Returns the number of the current iteration among all iterations of the loops over k in a packed block. `turns`: the
// iteration number in each loop.
Affine CpuContract::turn_in_block(const std::vector<Affine>& turns) const {
  Affine out;
  for (size_t i = 0; i < product_.k_atoms.size(); ++i) out = sum(turns[i], out, i == 0 ? 1 : product_.turns_of(i));
  return out;
}

void CpuContract::read(const CpuSide& side, TileId result, Slice from) {
  out_.push(product_.dot && !side.packed ? words_instr(result, product_.operand_dtype(side), std::move(from))
                                         : load_instr(result, std::move(from)));
}

TileId CpuContract::read_right(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& at,
                               const std::vector<Affine>& turns, bool last) {
  if (product_.b.computed) return compute_right(row_tile, panels, at, last);
  const TileId b =
      out_.tile(product_.read_dtype(product_.b), {1, panels.width}, product_.lanes > 1 ? 1 : -1, product_.lanes,
                product_.b.packed ? std::vector<std::vector<Affine>>() : column_bound(panels, at));
  Slice from;
  if (product_.image && !product_.rows_are_pixels()) {
    from.buffer = b_buffer_;
    from.offset = sum(column_of(panels), tap_in_image(turns));
    from.strides = {0, 1};
  } else if (product_.b.packed) {
    from.buffer = b_buffer_;
    from.offset = sum(product_.merged ? column_of(panels) : affine(panel_var_, split_.depth * split_.nr),
                      turn_in_block(turns), pitch_);
    from.strides = {0, 1};
  } else {
    from = slice_at(out_.input_buffer(product_.b.access.input), product_.b.access, at, {-1, product_.column_atom});
  }
  if (schedule_[kPrefetch] > 0 && !product_.b.packed && !product_.k_atoms.empty()) {
    fetch_next(row_tile, panels, at, last);
    fetch_ahead(b, from);  // the prefetch stands next to the load of `b`, so that both share one loop over vectors
  }
  read(product_.b, b, std::move(from));
  return b;
}

// Computes a row of a panel of the right operand from inputs in memory, without a packed copy. Every tile of rows
// computes the row again.
TileId CpuContract::compute_right(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& at, bool last) {
  TileExpr expr{product_.group, product_.domain,         out_, at, {{-1, 1}, {product_.column_atom, panels.width}},
                product_.lanes, column_bound(panels, at)};
  const absl::StatusOr<TileId> value = expr.operand(product_.domain.contract, product_.b.position);
  WL_CHECK(value.ok(), "an operand that is read in place: ", value.status().message());
  if (schedule_[kPrefetch] > 0) {
    fetch_next(row_tile, panels, at, last);
    for (const Instr& instr : expr.code)
      if (instr.op == InstrOp::kLoad && instr.slice.buffer == out_.input_buffer(product_.b.access.input))
        fetch_ahead(instr.result, instr.slice);
  }
  out_.push_all(std::move(expr.code));
  return *value;
}

// Prefetches a row of the right operand into the L1 cache, as many iterations ahead as the choice `prefetch` says.
// `from`: the slice of memory from which the current iteration loads the row as tile `b`.
void CpuContract::fetch_ahead(TileId b, const Slice& from) {
  size_t innermost = product_.k_atoms.size() - 1;
  while (innermost > 0 && product_.turns_of(innermost) == 1) --innermost;
  const int64_t elements = product_.step_of(innermost) * product_.b.access.strides[product_.k_atoms[innermost]];
  Slice ahead = from;
  ahead.offset = sum(from.offset, fixed(schedule_[kPrefetch] * elements));
  const Tile tile = out_.kernel().tiles[b];
  const int64_t line = kLineBytes / size_of(product_.group.nodes[product_.b.access.input].dtype);
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
void CpuContract::fetch_next(const RowTile& row_tile, const CpuSplit::Panels& panels, Place at, bool last) {
  const DType dtype = product_.group.nodes[product_.b.access.input].dtype;
  const int64_t line = kLineBytes / size_of(dtype), lines = panels.width / line;
  const bool by_depth = schedule_[kRowTilesOutermost] == 1;
  if (product_.dot || split_.panel_groups.size() > 1 || panels.width % line != 0 ||
      split_.row_tiles * split_.outer_rows_per_block < lines)
    return;
  if (by_depth ? last : panels.count == 1) return;
  if (by_depth)
    at[product_.k_atoms[0]] = sum(at[product_.k_atoms[0]], fixed(split_.k_block));
  else
    place_panel(panels, at, 1);
  const TileId of = out_.tile(dtype, {1, 1}, -1, 1);
  Slice next = slice_at(out_.input_buffer(product_.b.access.input), product_.b.access, at, {-1, product_.column_atom});
  if (lines > 1) next.offset.add(out_.derived("line", {row_tile.tile}, 1, lines), line);
  out_.push(prefetch_instr(of, std::move(next), 2));
}

}  // namespace wl

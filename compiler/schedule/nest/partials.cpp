// Rows that several blocks share (nest/row_parts.h). At the end of a phase each block stores its partial result: one
// value, or one tile of columns, for each row and part. In the next pass (in a cluster, after a cluster barrier) every
// block of the row combines the partial results of all blocks where it needs them, and continues with its own share of
// the row. With the choice last_block_combines only the block that arrives last combines them, in the same pass, since
// no other work on the row is left.
#include <algorithm>

#include "compiler/schedule/nest/lowering.h"

namespace wl {
namespace {

constexpr int64_t kIndependentLoads = 8;  // the most partial results that are loaded before the first one is used

}  // namespace

DType partial_dtype(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4 ? DType::f32 : dtype;
}

void RowLowering::share_row(int64_t step, bool one_tile) {
  at_.share_row(step);
  if (one_tile && at_.shares_vector()) at_.set_tile(at_.share());
}

Instr RowLowering::end_of_phase() {
  Instr out;
  out.op = InstrOp::kPass;
  if (last_block_combines_) out.pending = static_cast<int>(at_.parts());
  return out;
}

// The workspace has one element for each [row, part, column]. It also has rows for teams of the last block that lie
// beyond the last row.
RowLowering::PartialSpace RowLowering::partial_space(NodeId reduce, int64_t width, const RowPlace& place) {
  const int64_t parts = at_.parts(), rows = out_.kernel().grid / parts * block_rows_;
  const auto [buffer, is_new] = partials_.try_emplace(reduce, -1);
  if (is_new)
    buffer->second = out_.work(cat("parts", reduce), partial_dtype(group_.nodes[reduce].dtype), {rows, parts, width});
  return {buffer->second, place.row, parts * width, width};
}

Slice RowLowering::partial_slice(NodeId reduce, TileId tile, const RowPlace& place, const Affine& part) {
  const int64_t width = out_.kernel().tiles[tile].layout.shape[1];
  const PartialSpace space = partial_space(reduce, width, place);
  Slice out;
  out.buffer = space.buffer;
  out.offset = sum(sum(fixed(0), space.row, space.row_stride), part, space.part_stride);
  out.strides = {0, width > 1 ? 1 : 0};
  return out;
}

void RowLowering::store_partial(NodeId reduce, PhaseCode& code) {
  TileId result = results_.at(reduce);
  const DType dtype = partial_dtype(group_.nodes[reduce].dtype);
  if (dtype != group_.nodes[reduce].dtype) {
    const TileId wider = out_.like(result, dtype);
    code.partials.push_back(copy_instr(wider, result, dtype));
    result = wider;
  }
  Instr store = store_instr(result, partial_slice(reduce, result, code.place, at_.part()), false);
  if (at_.row_teams() > 1) store.guards.push_back({affine(kTeamVar), {0, 0}, 1});
  code.partials.push_back(std::move(store));
}

// Returns the result of a reduction, combined from the partial results of all blocks. If registers lose their values
// at the end of a phase, each later phase that needs the result combines the partial results again.
TileId RowLowering::combined(NodeId reduce, PhaseCode& code) {
  const std::pair<int, NodeId> key = {keeps_registers() ? 0 : code.phase, reduce};
  const auto [known, is_new] = combined_.try_emplace(key, -1);
  if (!is_new) return known->second;
  const bool is_wide = at_.wide(domain_.varies[reduce]);
  const TileId value = is_wide ? combined_tiles(reduce, code) : combined_lanes(reduce, code);
  const DType dtype = group_.nodes[reduce].dtype;
  TileId result = value;
  if (out_.kernel().tiles[value].dtype != dtype) {
    result = make_tile(dtype, is_wide);
    code.pre.push_back(copy_instr(result, value, dtype));
  }
  return combined_[key] = result;
}

// Combines a reduction that has one value for each part: the values are distributed over lanes and reduced like a row.
TileId RowLowering::combined_lanes(NodeId reduce, PhaseCode& code) {
  const DType dtype = partial_dtype(group_.nodes[reduce].dtype);
  const Op op = combine_of(group_.nodes[reduce].op);
  const auto load = [&](NodeId of) {
    const TileId tile = part_tile(dtype, at_.parts());
    Slice slice = partial_slice(of, results_.at(of), code.place, fixed(0));
    slice.strides = {0, partial_space(of, 1, code.place).part_stride};
    code.pre.push_back(load_instr(tile, std::move(slice)));
    return tile;
  };
  TileId parts = load(reduce);
  if (const auto online = phases_.online.find(reduce); online != phases_.online.end()) {
    const TileId largest = combined(online->second, code);
    const TileId own = load(online->second), scaled = part_tile(dtype, at_.parts());
    code.pre.push_back(times_power(scaled, parts, own, largest, false, dtype));
    parts = scaled;
  }
  const TileId partial = part_tile(dtype, part_lanes()), result = make_tile(dtype, false);
  code.pre.push_back(fill_instr(partial, identity_of(op, dtype)));
  code.pre.push_back(fold_instr(partial, parts, op));
  code.pre.push_back(cross_instr(result, partial, op));
  return result;
}

// Combines a reduction that has a tile of columns for each part. Teams that share the reduced loop also divide the
// parts among them, and then combine their results.
TileId RowLowering::combined_tiles(NodeId reduce, PhaseCode& code) {
  const DType dtype = partial_dtype(group_.nodes[reduce].dtype);
  const Op op = combine_of(group_.nodes[reduce].op);
  const int64_t teams = at_.row_teams();
  const int64_t each = (at_.parts() + teams - 1) / teams, steps = std::min(each, kIndependentLoads);
  const TileId total = make_tile(dtype, true);
  code.pre.push_back(fill_instr(total, identity_of(op, dtype)));
  Instr loop;
  loop.op = InstrOp::kLoop;
  if (each > steps) loop.var = out_.loop_var("k");
  loop.trips = {fixed((each + steps - 1) / steps)};
  std::vector<Instr> maps;
  for (int64_t i = 0; i < steps; ++i) {
    Affine part = fixed(i * teams);
    if (loop.var >= 0) part.add(loop.var, steps * teams);
    if (teams > 1) part.add(kTeamVar, 1);
    const TileId one = make_tile(dtype, true);
    Instr load = load_instr(one, partial_slice(reduce, one, code.place, part));
    if (at_.parts() % (steps * teams) != 0) {
      load.guards.push_back({part, {0, 0}, at_.parts()});
      load.value = identity_of(op, dtype);
    }
    loop.body.push_back(std::move(load));
    maps.push_back(map_instr(total, op, dtype, {total, one}));
  }
  append(loop.body, std::move(maps));
  if (loop.var >= 0)
    code.pre.push_back(std::move(loop));
  else
    append(code.pre, std::move(loop.body));
  if (teams == 1) return total;
  const TileId result = make_tile(dtype, true);
  PhaseCode exchanged;
  combine_elements(reduce, op, total, result, exchanged);
  append(code.pre, std::move(exchanged.exchange));
  append(code.pre, std::move(exchanged.post));
  return result;
}

}  // namespace wl

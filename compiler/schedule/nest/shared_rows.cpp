// Rows that several blocks share (plan/parts.h). A block's phase ends with what it has reduced in the workspace, one
// value or column tile for each row and part; after the pass every block of the row combines all of them, where it
// needs the result, and goes on with its own share of the row. With `last` nothing of the row is left to do by then,
// and the block that comes last combines.
#include <algorithm>

#include "compiler/schedule/nest/loops.h"
#include "compiler/schedule/nest/parts.h"

namespace wl {
namespace {

constexpr int64_t kInFlight = 8;  // loads that do not wait for each other

// Partial results keep the precision that they have in registers.
DType kept_dtype(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4 ? DType::f32 : dtype;
}

}  // namespace

// The first row of a block that owns `rows` of them, or a share of them.
Affine LoopLowering::row_of_block(int64_t rows) {
  if (parts_ == 1) return affine(kBlockVar, rows);
  return affine(out_.derived("rows", {affine(kBlockVar)}, parts_), rows);
}

void LoopLowering::share_out(int64_t step) {
  part_ = affine(out_.derived("which", {affine(kBlockVar)}, 1, parts_));
  part_atom_ = shared_atom(domain_);
  const bool along = part_atom_ == domain_.vector;
  share_ = share_of(domain_.atoms[part_atom_].extent, parts_, along ? step : 1);
  WL_CHECK((domain_.atoms[part_atom_].extent + share_ - 1) / share_ == parts_, "a part without work");
  if (!cluster_) phases_.kept.clear();  // no buffer survives a pass
  if (along && (resident_ || !team_)) vector_tile_ = share_;
  if (along && cluster_) row_extent_ = share_;  // what a block keeps of its row
  if (cluster_) out_.kernel().cluster = static_cast<int>(parts_);
}

std::vector<Affine> LoopLowering::chunk_trips() {
  const int64_t whole = vector_reduced_ ? vector_extent_ : row_extent_;
  const int64_t chunks = (whole + vector_tile_ - 1) / vector_tile_;
  if (parts_ == 1 || part_atom_ != domain_.vector) return {fixed(chunks)};
  std::vector<Affine> trips = {fixed(share_ / vector_tile_)};
  if (chunks % (share_ / vector_tile_) != 0) trips.push_back(sum(fixed(chunks), part_, -share_ / vector_tile_));
  return trips;
}

// What ends a phase whose results other parts need.
Instr LoopLowering::meeting() {
  Instr out;
  out.op = cluster_ ? InstrOp::kClusterBarrier : InstrOp::kPass;
  if (!last_) return out;
  out.pending = static_cast<int>(parts_);
  if (team_) out.slice.buffer = out_.shared("last", DType::u32, {1});
  return out;
}

// Where a row's part lies: in the workspace [row, part, element], in a cluster [part, row of the block, element].
Slice LoopLowering::left_slice(NodeId reduce, TileId tile, const RowPlace& place, const Affine& part) {
  Kernel& kernel = out_.kernel();
  const int64_t width = kernel.tiles[tile].layout.shape[1];
  // Teams beyond the last row have a place of their own.
  const int64_t rows = cluster_ ? chunk_ : kernel.grid / parts_ * chunk_;
  if (!left_.contains(reduce)) {
    const std::string name = cat("parts", reduce);
    const DType dtype = kept_dtype(group_.nodes[reduce].dtype);
    left_[reduce] =
        cluster_ ? out_.cluster(name, dtype, {parts_, rows, width}) : out_.work(name, dtype, {rows, parts_, width});
  }
  Slice out;
  out.buffer = left_[reduce];
  const Affine row = !cluster_ ? place.row : split_ ? fixed(0) : affine(kTeamVar);
  out.offset = sum(sum(fixed(0), row, cluster_ ? width : parts_ * width), part, left_stride(tile));
  out.strides = {0, width > 1 ? 1 : 0};
  return out;
}

// Elements from one part of a row to the next.
int64_t LoopLowering::left_stride(TileId tile) {
  return out_.kernel().tiles[tile].layout.shape[1] * (cluster_ ? chunk_ : 1);
}

void LoopLowering::leave(NodeId reduce, Code& code) {
  TileId result = results_.at(reduce)[0];
  const DType dtype = kept_dtype(group_.nodes[reduce].dtype);
  if (dtype != group_.nodes[reduce].dtype) {
    const TileId wider = out_.like(result, dtype);
    code.leave.push_back(copy_instr(wider, result, dtype));
    result = wider;
  }
  Instr store = store_instr(result, left_slice(reduce, result, code.place, part_), false);
  if (split_) store.guards.push_back({affine(kTeamVar), {0, 0}, 1});
  code.leave.push_back(std::move(store));
}

// A reduction's result in the pass of `code`, from what all parts left.
TileId LoopLowering::combined(NodeId reduce, Code& code) {
  const std::pair<int, NodeId> key = {cluster_ ? 0 : code.phase, reduce};  // a cluster keeps it
  const auto [known, is_new] = combined_.try_emplace(key, -1);
  if (!is_new) return known->second;
  const bool is_wide = wide(domain_.varies[reduce]);
  const TileId value = is_wide ? combined_tiles(reduce, code) : combined_lanes(reduce, code);
  const DType dtype = group_.nodes[reduce].dtype;
  TileId result = value;
  if (out_.kernel().tiles[value].dtype != dtype) {
    result = make_tile(dtype, is_wide);
    code.pre.push_back(copy_instr(result, value, dtype));
  }
  return combined_[key] = result;
}

// One value a part: dealt to the lanes of a wave, then folded as a row is.
TileId LoopLowering::combined_lanes(NodeId reduce, Code& code) {
  Kernel& kernel = out_.kernel();
  const DType dtype = kept_dtype(group_.nodes[reduce].dtype);
  const Op op = combine_of(group_.nodes[reduce].op);
  const int lanes = team_ ? static_cast<int>(std::min<int64_t>({parts_, kernel.wave, kernel.team})) : 1;
  const auto tile_of = [&](int64_t width) {
    return team_ ? out_.tile({dtype, team_layout({1, width}, 1, 1, lanes, lanes), {}})
                 : out_.tile(dtype, {1, width}, -1, 1);
  };
  const auto load = [&](NodeId of) {
    const TileId tile = tile_of(parts_);
    Slice slice = left_slice(of, results_.at(of)[0], code.place, fixed(0));
    slice.strides = {0, left_stride(results_.at(of)[0])};
    code.pre.push_back(load_instr(tile, std::move(slice)));
    return tile;
  };
  TileId parts = load(reduce);
  if (const auto online = phases_.online.find(reduce); online != phases_.online.end()) {
    const TileId largest = combined(online->second, code);
    const TileId own = load(online->second), scaled = tile_of(parts_);
    code.pre.push_back(times_power(scaled, parts, own, largest, false, dtype));
    parts = scaled;
  }
  const TileId partial = tile_of(lanes), result = make_tile(dtype, false);
  code.pre.push_back(fill_instr(partial, identity_of(op, dtype)));
  code.pre.push_back(fold_instr(partial, parts, op));
  code.pre.push_back(cross_instr(result, partial, op));
  return result;
}

// A tile of columns a part. Where teams share a loop they share the parts too, and exchange what they have combined.
TileId LoopLowering::combined_tiles(NodeId reduce, Code& code) {
  const DType dtype = kept_dtype(group_.nodes[reduce].dtype);
  const Op op = combine_of(group_.nodes[reduce].op);
  const int64_t teams = split_ ? out_.kernel().teams : 1;
  const int64_t each = (parts_ + teams - 1) / teams, steps = std::min(each, kInFlight);
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
    if (split_) part.add(kTeamVar, 1);
    const TileId one = make_tile(dtype, true);
    Instr load = load_instr(one, left_slice(reduce, one, code.place, part));
    if (parts_ % (steps * teams) != 0) {
      load.guards.push_back({part, {0, 0}, parts_});
      load.value = identity_of(op, dtype);
    }
    loop.body.push_back(std::move(load));
    maps.push_back(map_instr(total, op, dtype, {total, one}));
  }
  std::move(maps.begin(), maps.end(), std::back_inserter(loop.body));
  if (loop.var >= 0) {
    code.pre.push_back(std::move(loop));
  } else {
    std::move(loop.body.begin(), loop.body.end(), std::back_inserter(code.pre));
  }
  if (!split_) return total;
  const TileId result = make_tile(dtype, true);
  Code exchanged;
  combine_teams(reduce, op, total, result, exchanged);
  std::move(exchanged.exchange.begin(), exchanged.exchange.end(), std::back_inserter(code.pre));
  std::move(exchanged.post.begin(), exchanged.post.end(), std::back_inserter(code.pre));
  return result;
}

}  // namespace wl

// The loop over K of a contraction on GPUs: loads, stores to shared memory and outer products; and the epilogue.
#include <algorithm>
#include <utility>

#include "compiler/domain/reads.h"
#include "compiler/schedule/contract/gpu.h"

namespace wl {

Place GpuContract::k_place(const Affine& step, int64_t inside, int64_t first) {
  Place at = block_;
  const bool alone = outer_ == 1;
  if (k_atom_ >= 0) {
    at[k_atom_] = fixed(first);
    if (inside > 1) at[k_atom_] = sum(fixed(first), alone ? step : digit_of("k", step, 1, inside), step_);
  }
  for (size_t i = k_outer_.size(); i-- > 0;) {
    const int64_t extent = domain_.atoms[k_outer_[i]].extent;
    if (extent == 1) continue;
    at[k_outer_[i]] = digit_of(domain_.atoms[k_outer_[i]].name, step, inside, i == 0 ? 0 : extent);
    inside *= extent;
  }
  return at;
}

Affine GpuContract::digit_of(const std::string& name, const Affine& of, int64_t div, int64_t mod) {
  if (of.terms.empty()) return fixed(mod == 0 ? of.base / div : of.base / div % mod);
  if (div == 1 && mod == 0) return of;
  return affine(out_.derived(name, {of}, div, mod));
}

void GpuContract::fill(const Place& at, bool masked) {
  std::vector<std::pair<const Side*, TileId>> tiles;
  for (const Side* side : {&rows_, &columns_}) {
    if (is_resident(*side)) continue;
    tiles.emplace_back(side, side->async && !masked ? fetch_copied(*side, at) : fetch_side(*side, at, masked));
    if (!status_.ok()) return;
  }
  for (const auto& [side, tile] : tiles) out_.push(store_instr(stored(*side, tile), place_of(*side), false));
}

// Returns the tile in the layout in which it is stored to shared memory. Vectors along rows or columns are split into
// elements if the buffer is swizzled with k innermost, because they must then be stored element by element.
TileId GpuContract::stored(const Side& side, TileId tile) {
  const Layout& loaded = out_.kernel().tiles[tile].layout;
  if (side.along_k == side.k_inner || loaded.lanes() == 1 || out_.kernel().buffers[side.buffer].swizzle == Swizzle())
    return tile;
  Layout single = loaded;
  for (Layout::Base& base : single.bases)
    if (base.kind == 'v') base.kind = 'r';
  const TileId out = out_.tile({side.dtype, std::move(single), {}});
  out_.push(convert_instr(out, tile));
  return out;
}

std::vector<TileLoop> GpuContract::fetched_loops(const Side& side) const {
  std::vector<TileLoop> loops = side.loops;
  loops.insert(side.along_k ? loops.end() : loops.begin(), {k_atom_, step_});
  return loops;
}

TileId GpuContract::fetch_side(const Side& side, const Place& at, bool masked) {
  TileExpr expr{group_, domain_, out_, at, fetched_loops(side)};
  expr.layout = [this, &side](const std::vector<bool>& moves) { return fetch_layout(side, moves); };
  const absl::StatusOr<TileId> value = expr.operand(domain_.contract, side.position);
  if (!value.ok()) {
    fail(value.status());
    return -1;
  }
  for (Instr& instr : expr.code) {
    if (instr.op != InstrOp::kLoad) continue;
    guard_end(side, side.along_k ? 0 : 1, instr);
    if (!masked) continue;
    std::vector<int64_t> along_k(instr.slice.strides.size(), 0);
    (side.along_k ? along_k.back() : along_k.front()) = 1;
    instr.guards.push_back({k_atom_ < 0 ? fixed(0) : at[k_atom_], std::move(along_k), k_extent_});
  }
  out_.push_all(std::move(expr.code));
  TileId tile = *value;
  if (out_.kernel().tiles[tile].dtype != side.dtype) {
    tile = out_.like(*value, side.dtype);
    out_.push(copy_instr(tile, *value, side.dtype));
  }
  // Matrix instructions multiply whole fragments, so elements beyond the end of K must be zero. Guarded loads return
  // zeros there, but elementwise work may have changed them, or the operand may not vary along k_atom_ at all.
  const Domain::Operand& operand = domain_.operands[domain_.contract][side.position];
  const bool zeros = operand.is_direct() && k_atom_ >= 0 && operand.access.strides[k_atom_] != 0;
  return matrix_ && masked && !zeros ? cut_off(side, tile, at[k_atom_]) : tile;
}

Slice GpuContract::place_of(const Side& side) const {
  Slice to;
  to.buffer = side.buffer;
  const int64_t own = side.k_inner ? side.pitch : 1, k = side.k_inner ? 1 : side.pitch;
  // The distance in shared memory, in elements, between neighbours along the current loop. The ranges of rows or
  // columns that form a tile are stored one after another.
  int64_t stride = own;
  for (auto loop = side.loops.rbegin(); loop != side.loops.rend(); ++loop) {
    to.strides.insert(to.strides.begin(), stride);
    stride *= loop->extent;
  }
  to.strides.insert(side.along_k ? to.strides.end() : to.strides.begin(), k);
  return to;
}

TileId GpuContract::fetch_copied(const Side& side, const Place& at) {
  const Access& access = *copied_operand(group_, domain_, side.position, side.dtype);
  // An operand is copied element by element if it is stored along another axis than it is read along, or if it has no
  // whole vectors.
  const bool vectors = side.along_k == side.k_inner && side.copies_vectors(side.width());
  std::vector<AtomId> axes;
  for (const TileLoop& loop : fetched_loops(side)) axes.push_back(loop.atom);
  const TileId tile = out_.tile({side.dtype, fetch_layout(side, std::vector<bool>(axes.size(), true), vectors), {}});
  Instr load = load_instr(tile, slice_at(out_.input_buffer(access.input), access, at, axes));
  for (const Guard& guard : access.guards) load.guards.push_back(guard_at(guard, at, axes));
  guard_end(side, side.along_k ? 0 : 1, load);
  out_.push(std::move(load));
  return tile;
}

void GpuContract::compute(int64_t depth) {
  if (matrix_) return multiply_matrices(depth);
  const int64_t together = depth % unroll_ == 0 ? unroll_ : 1;
  Affine k;
  VarId var = -1;
  if (depth > together) {
    var = out_.loop_var("kk");
    out_.open_loop(var, {fixed(depth / together)});
    k = affine(var, together);
  }
  const bool vectors = vector_ > 1 && rows_each_ % vector_ == 0;
  const TileId read = out_.tile({dtype_, grid_layout(true, false, vectors ? 'v' : 'r'), {}});
  const TileId a = vectors ? out_.tile({dtype_, grid_layout(true, false), {}}) : read;
  const TileId b = out_.tile({dtype_, grid_layout(false, true), {}});
  for (int64_t i = 0; i < together; ++i) {
    for (const Side* side : {&rows_, &columns_}) {
      Slice from;
      from.buffer = side->buffer;
      from.offset = sum(fixed(i * side->pitch), k, side->pitch);
      from.strides = {side == &rows_ ? 1 : 0, side == &rows_ ? 0 : 1};
      out_.push(load_instr(side == &rows_ ? read : b, std::move(from)));
    }
    if (vectors) {
      Instr convert;
      convert.op = InstrOp::kConvert;
      convert.result = a;
      convert.args = {read};
      out_.push(std::move(convert));
    }
    out_.push(map_instr(accumulator_, Op::fma, dtype_, {a, b, accumulator_}));
  }
  if (var >= 0) out_.close_loop();
}

// Returns the range of whole steps along K, out of `total`, from the first to the last that can change an element of
// the block's tile.
Iterations GpuContract::steps_that_count(int64_t total) {
  const Region region = outer_ == 1 && k_atom_ >= 0 ? counted_products(group_, domain_) : Region();
  TileBox box{block_, std::vector<int64_t>(domain_.atoms.size(), 0)};
  for (const Side* side : {&rows_, &columns_})
    for (const TileLoop& loop : side->loops)
      if (loop.atom >= 0) box.more[loop.atom] = loop.extent - 1;
  if (region.empty()) return {fixed(0), {fixed(total)}};
  return iterations_within(region, domain_, box, k_atom_, step_, total, out_);
}

void GpuContract::emit_whole_steps() {
  const int64_t total = outer_ * whole_ / parts_;
  if (total == 0) return;
  Affine now = sum(fixed(0), part_, total);
  if (total > 1) {
    Iterations steps = steps_that_count(total);
    steps_ = out_.loop_var("step");
    out_.open_loop(steps_, std::move(steps.trips));
    now = sum(sum(std::move(steps.first), now), affine(steps_));
  }
  fill(k_place(now, whole_, 0), false);
  compute(step_);
  if (steps_ >= 0) out_.close_loop();
}

void GpuContract::emit_tail() {
  const int64_t left = k_extent_ - whole_ * step_;
  if (left == 0 || outer_ == 0) return;
  VarId var = -1;
  if (outer_ > 1) {
    var = out_.loop_var("last");
    out_.open_loop(var, {fixed(outer_)});
  }
  fill(k_place(var < 0 ? fixed(0) : affine(var), 1, whole_ * step_), true);
  compute(left);
  if (var >= 0) out_.close_loop();
}

TileExpr GpuContract::result_expr() {
  TileExpr expr{group_, domain_, out_, block_, rows_.loops};
  expr.loops.insert(expr.loops.end(), columns_.loops.begin(), columns_.loops.end());
  expr.layout = [this](const std::vector<bool>& moves) { return result_layout(moves); };
  return expr;
}

void GpuContract::emit_epilogue() {
  TileId value = accumulator_;
  const NodeId made = total_ >= 0 ? total_ : domain_.contract;
  std::vector<Instr> code;
  if (const DType dtype = group_.nodes[made].dtype; dtype != dtype_) {
    value = out_.like(accumulator_, dtype);
    code.push_back(copy_instr(value, accumulator_, dtype));
  }
  TileExpr expr = result_expr();
  if (expr.loops.size() > 2) {
    const TileId pixels =
        out_.tile({group_.nodes[made].dtype, result_layout(std::vector<bool>(expr.loops.size(), true)), {}});
    code.push_back(view_instr(pixels, value));
    value = pixels;
  }
  if (columns_.extent % columns_.width() != 0) {
    expr.bound.resize(expr.loops.size());
    expr.bound.back() = {sum(fixed(columns_.extent), columns_.first.back(), -1)};
  }
  expr.known = {{made, value}};
  expr.code = std::move(code);
  for (const Domain::Store& store : domain_.stores) {
    if (store.source < 0) return fail(unimplemented("a copied output beside a contraction"));
    const absl::StatusOr<TileId> result = expr.value(store.source);
    if (!result.ok()) return fail(result.status());
    const BufferId to = out_.output_buffer(store.output);
    expr.code.push_back(store_instr(*result, slice_at(to, store.access, block_, expr.axes()), false));
    out_.kernel().buffers[to].once = std::all_of(domain_.parallel.begin(), domain_.parallel.end(), [&](AtomId a) {
      return domain_.atoms[a].extent == 1 || store.access.moves_along(a);
    });
  }
  for (Instr& instr : expr.code) {
    if (instr.op != InstrOp::kLoad && instr.op != InstrOp::kStore) continue;
    guard_end(rows_, 0, instr);
    guard_around(columns_, rows_.loops.size(), instr);
  }
  out_.push_all(std::move(expr.code));
}

}  // namespace wl

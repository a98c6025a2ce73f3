// One row's code, and the loop over rows.
#include <algorithm>

#include "compiler/schedule/nest/loops.h"

namespace wl {

// Operand 0 (at `first` of the map) times operand 1 of a contraction, in the dtype that it sums in.
int LoopLowering::product_expr(NodeId contract, int first, DType dtype, Instr& map, Code& code) {
  int factors[2] = {first, operand_expr(contract, 1, map, code)};
  for (int& factor : factors)
    if (map.expr[factor].dtype != dtype) factor = push_op(map, Op::cast, dtype, {factor});
  return push_op(map, Op::mul, dtype, {factors[0], factors[1]});
}

// The operand of a reduction as a tile: its own, or a copy of an input.
TileId LoopLowering::folded_value(NodeId reduce, DType dtype, Code& code) {
  Instr operand;
  operand.op = InstrOp::kMap;
  int root = operand_expr(reduce, 0, operand, code);
  if (class_of(group_.nodes[reduce].op) == OpClass::kContract) root = product_expr(reduce, root, dtype, operand, code);
  const auto any = [&](auto is) { return std::any_of(operand.args.begin(), operand.args.end(), is); };
  const bool is_wide = any([&](TileId t) { return is_wide_tile(t); });
  TileId value = operand.expr[root].kind == ExprNode::Kind::kArg ? operand.args[operand.expr[root].arg] : -1;
  if (value < 0) {
    operand.result = make_tile(dtype, is_wide, any([&](TileId t) { return is_tall_tile(t); }));
    value = operand.result;
    (is_wide || lanes_ == 1 ? code.inner : code.narrow).push_back(std::move(operand));
  }
  // Counts once for every element along the vector atom.
  if (!is_wide && vector_reduced_ && lanes_ > 1) value = spread(value, code.inner);
  return value;
}

// Accumulates the reduction's operand in this phase and leaves the result, age 0, after it.
void LoopLowering::fold(NodeId reduce, Code& code) {
  const Node& node = group_.nodes[reduce];
  const bool products = class_of(node.op) == OpClass::kContract;
  const Op combine = combine_of(node.op);
  // Products of narrow floats are neither rounded nor summed in their own dtype.
  const DType dtype = products && is_float(node.dtype) && size_of(node.dtype) < 4 ? DType::f32 : node.dtype;
  const TileId value = folded_value(reduce, dtype, code);
  const bool is_wide = is_wide_tile(value);
  const bool folds = is_wide && vector_reduced_;
  const TileId partial = !folds  ? make_tile(dtype, is_wide, is_tall_tile(value))
                         : team_ ? out_.team_tile(dtype, {1, lanes_}, 1, vector_)
                                 : out_.tile(dtype, {1, lanes_}, 1, lanes_);
  code.fills.push_back(fill_instr(partial, identity_of(combine, dtype)));
  const TileId result = results_.at(reduce)[0];
  if (folds) {
    code.inner.push_back(fold_instr(partial, value, combine));
    const TileId whole = dtype == node.dtype ? result : out_.like(result, dtype);
    if (team_)
      cross(reduce, combine, partial, whole, code);
    else
      code.post.push_back(cross_instr(whole, partial, combine));
    if (whole != result) code.post.push_back(copy_instr(result, whole, node.dtype));
  } else {
    (is_wide || lanes_ == 1 ? code.inner : code.narrow).push_back(map_instr(partial, combine, dtype, {partial, value}));
    if (split_) {
      const TileId whole = dtype == node.dtype ? result : out_.like(result, dtype);
      combine_teams(reduce, combine, partial, whole, code);
      if (whole != result) code.post.push_back(copy_instr(result, whole, node.dtype));
      return;
    }
    code.post.push_back(copy_instr(result, partial, node.dtype));
  }
}

// Within a wave by shuffles; the waves of a team, and teams that share a row, then read what all of them left in shared
// memory.
void LoopLowering::cross(NodeId reduce, Op combine, TileId partial, TileId result, Code& code) {
  Kernel& kernel = out_.kernel();
  const DType dtype = kernel.tiles[partial].dtype;
  const int waves = std::max(1, kernel.team / kernel.wave);
  const int slots = split_ ? waves * kernel.teams : waves;
  if (slots == 1) {
    code.post.push_back(cross_instr(result, partial, combine));
    return;
  }
  const auto tile_of = [&](Layout layout) {
    kernel.tiles.push_back({dtype, std::move(layout), {}});
    return static_cast<TileId>(kernel.tiles.size()) - 1;
  };
  // One value for each wave: the unit bits alone.
  const TileId left = tile_of(team_layout({1, waves}, 1, 1, waves, 1));
  Slice mine;
  mine.buffer = out_.shared(cat("waves", reduce), dtype, {kernel.teams, waves});
  if (kernel.teams > 1) mine.offset.add(kTeamVar, waves);
  mine.strides = {0, 1};
  Slice all = mine;
  if (split_) all.offset = fixed(0);
  code.exchange.push_back(cross_instr(left, partial, combine));
  code.exchange.push_back(store_instr(left, mine, false));
  const int vector = slots % vector_ == 0 ? vector_ : 1;
  const TileId gathered = tile_of(team_layout({1, slots}, 1, vector, 1, 1));
  const TileId total = tile_of(team_layout({1, vector}, 1, vector, 1, 1));
  code.post.push_back(load_instr(gathered, all));
  code.post.push_back(fill_instr(total, identity_of(combine, dtype)));
  code.post.push_back(fold_instr(total, gathered, combine));
  code.post.push_back(cross_instr(result, total, combine));
}

// What the teams of a block have accumulated element by element, in shared memory; every team then has the whole.
void LoopLowering::combine_teams(NodeId reduce, Op combine, TileId partial, TileId result, Code& code) {
  const int teams = out_.kernel().teams;
  const Tile tile = out_.kernel().tiles[partial];
  const int64_t width = tile.layout.shape[1];
  Slice slice;
  const auto [known, is_new] = teams_.try_emplace({reduce, tile.dtype}, -1);
  if (is_new) known->second = out_.shared(cat("teams", reduce), tile.dtype, {teams, width});
  slice.buffer = known->second;
  slice.offset = affine(kTeamVar, width);
  slice.strides = {0, 1};
  code.exchange.push_back(store_instr(partial, slice, false));
  TileId total = -1;
  for (int team = 0; team < teams; ++team) {
    slice.offset = fixed(team * width);
    const TileId one = out_.like(partial, tile.dtype);
    code.post.push_back(load_instr(one, slice));
    if (total < 0) {
      total = one;
      continue;
    }
    const TileId sum = team + 1 == teams ? result : out_.like(partial, tile.dtype);
    code.post.push_back(map_instr(sum, combine, tile.dtype, {total, one}));
    total = sum;
  }
}

// How often a team runs a loop around its row: its share, where blocks or the teams of a block share the loop.
std::vector<Affine> LoopLowering::outer_trips(size_t loop) {
  const AtomId atom = outer_reduced_[loop];
  const int64_t extent = domain_.atoms[atom].extent;
  std::vector<Affine> trips = {fixed(extent)};
  if (parts_ > 1 && atom == part_atom_) {
    trips = {fixed(share_)};
    if (extent % share_ != 0) trips.push_back(sum(fixed(extent), part_, -share_));
  }
  if (!split_ || loop != 0) return trips;
  const int teams = out_.kernel().teams;
  for (Affine& trip : trips) trip = sum(std::move(trip), affine(kTeamVar, -1, teams - 1));
  return {affine(out_.derived("share", std::move(trips), teams))};
}

// Inputs that move with the row are fetched ahead, rows of them or, where a row is walked in chunks, chunks, in the
// phase (of a chunk: the walk) that reads them first or, `late`, in the last one: that has least to wait for.
void LoopLowering::prefetch(Code& code) {
  const int64_t distance = schedule_[kPrefetch];
  const bool late = schedule_[kPrefetchLastPhase] != 0;
  if (code.phase == 0) read_first_ = code.loads;
  if (distance == 0 || code.phase != (late ? phases_.count - 1 : 0)) return;
  const bool chunks = chunk_var_ >= 0;  // after a row's last chunk the next row's first, where rows lie together
  Affine ahead = code.place.row;
  ahead.base += chunks ? 0 : distance;
  RowPlace place = place_of(ahead, {});
  place.vector_base.base += chunks ? distance * vector_tile_ : 0;
  for (const auto& loaded : read_first_) {
    const Access& access = loaded.first;  // named: clang 14 does not capture structured bindings
    const TileId tile = loaded.second;
    if (out_.kernel().tiles[tile].layout.lanes() == 1) continue;
    const bool moves_with_row =
        std::any_of(row_atoms_.begin(), row_atoms_.end(), [&](AtomId a) { return access.strides[a] != 0; }) ||
        (!vector_reduced_ && vector_tiles_ > 1);
    if (!moves_with_row) continue;
    Instr instr;
    instr.op = InstrOp::kPrefetch;
    instr.args = {tile};
    instr.level = static_cast<int>(schedule_[kPrefetchLevel]);
    instr.slice = slice_of(out_.input_buffer(access.input), access, place, true);
    const auto last = std::find_if(code.inner.rbegin(), code.inner.rend(),
                                   [](const Instr& other) { return other.op == InstrOp::kLoad; });
    const bool second = late && chunks && last != code.inner.rend();
    code.inner.insert(second ? std::prev(last.base()) : code.inner.begin(), std::move(instr));
  }
}

TileId LoopLowering::stored_value(const Domain::Store& store, Code& code) {
  const DType dtype = group_.nodes[group_.outputs[store.output].node].dtype;
  if (!store.pieces.empty()) return load(store.pieces, dtype, code);
  if (store.source < 0) return load(store.copy, dtype, code);
  const Op op = group_.nodes[store.source].op;
  if (op == Op::constant) {
    const TileId tile = tile_of(dtype, atoms_of(store.access));
    code.pre.push_back(fill_instr(tile, group_.nodes[store.source].value));
    return tile;
  }
  if (op == Op::iota) {
    Instr map;
    map.op = InstrOp::kMap;
    iota_expr(store.copy, dtype, map, code);
    map.result = tile_of(dtype, atoms_of(store.copy));
    const TileId tile = map.result;
    code_for(atoms_of(store.copy), code).push_back(std::move(map));
    return tile;
  }
  return get(store.source, code);
}

// A store within loops that it does not move along happens in their first turn.
void LoopLowering::store_once(const Access& access, const RowPlace& place, Instr& store) const {
  for (AtomId a : outer_reduced_)
    if (domain_.atoms[a].extent > 1 && !access.moves_along(a)) store.guards.push_back({place.atom[a], {0, 0}, 1});
  const bool walks = chunk_var_ >= 0 || (parts_ > 1 && part_atom_ == domain_.vector);
  if (walks && !access.moves_along(domain_.vector)) store.guards.push_back({place.vector_base, {0, 0}, 1});
}

LoopLowering::Code LoopLowering::phase_code(int phase, RowPlace place) {
  Code code;
  if (resident_ && (parts_ == 1 || cluster_)) code = std::move(carried_);
  code.phase = phase;
  code.place = std::move(place);
  for (NodeId reduce : phases_.reduces)
    if (phases_.level[reduce] - 1 == phase && !phases_.online.contains(reduce)) {
      const bool rides = std::any_of(phases_.online.begin(), phases_.online.end(),
                                     [&](const auto& pair) { return pair.second == reduce; });
      !rides ? fold(reduce, code) : team_ ? fold_online(reduce, code) : fold_chunks(reduce, code);
    }
  const bool streaming = schedule_[kStreamStores] != 0;
  for (int s : phases_.stores[phase]) {
    const Domain::Store& store = domain_.stores[s];
    const std::vector<AtomId> moves = atoms_of(store.access);
    const bool inside = inner(moves);
    // What is only known when the phase has ended is computed from the results' first age.
    Code* into = &code;
    Code after;
    const bool late = !inside && store.source >= 0 && phases_.level[store.source] > phase;
    if (late) {
      after.phase = parts_ > 1 ? phase + 1 : phase;
      after.place = code.place;
      into = &after;
    }
    TileId value = stored_value(store, *into);
    const bool is_wide = wide(moves);
    if ((is_wide && !is_wide_tile(value)) || (tall(moves) && !is_tall_tile(value)))
      value = spread(value, inside ? code.inner : into->pre, tall(moves));
    Instr instr =
        store_instr(value, slice_of(out_.output_buffer(store.output), store.access, code.place, is_wide), streaming);
    if (inside) {
      if (team_ || parts_ > 1) store_once(store.access, code.place, instr);
      (is_wide || lanes_ == 1 ? code.inner : code.narrow).push_back(std::move(instr));
    } else {
      std::vector<Instr>& end = late && parts_ > 1 ? code.after : code.post;
      std::move(after.pre.begin(), after.pre.end(), std::back_inserter(end));
      if (split_) instr.guards.push_back({affine(kTeamVar), {0, 0}, 1});
      if (parts_ > 1 && !last_) instr.guards.push_back({part_, {0, 0}, 1});
      end.push_back(std::move(instr));
    }
  }
  for (NodeId reduce : phases_.reduces)
    if (parts_ > 1 && phases_.level[reduce] - 1 == phase) leave(reduce, code);
  prefetch(code);
  if (resident_) {
    carried_.tiles = code.tiles;
    carried_.loads = code.loads;
    carried_.joined = code.joined;
  }
  return code;
}

// The phases that run together. Their stretches follow each other, so that they print as one loop.
void LoopLowering::emit_row(std::vector<Code> codes, bool prologue) {
  const int phases = static_cast<int>(codes.size());
  for (Code& code : codes) {
    out_.push_all(std::move(code.fills));
    out_.push_all(std::move(code.pre));
    if (outer_reduced_.empty()) out_.push_all(std::move(code.narrow));
  }
  std::vector<std::pair<VarId, std::vector<Affine>>> loops;
  for (size_t i = 0; i < outer_reduced_.size(); ++i) loops.emplace_back(outer_vars_[i], outer_trips(i));
  if (chunk_var_ >= 0) loops.emplace_back(chunk_var_, chunk_trips());
  for (const auto& [var, trips] : loops) out_.open_loop(var, trips);
  if (!outer_reduced_.empty())
    for (Code& code : codes) out_.push_all(std::move(code.narrow));
  for (Code& code : codes) out_.push_all(std::move(code.inner));
  for (size_t i = 0; i < loops.size(); ++i) out_.close_loop();
  for (Code& code : codes) out_.push_all(std::move(code.exchange));
  for (Code& code : codes) out_.push_all(std::move(code.post));
  for (Code& code : codes) {
    if (code.leave.empty()) continue;
    out_.push_all(std::move(code.leave));
    out_.push(meeting());
    out_.push_all(std::move(code.after));
  }
  if (!pipelined_) return;
  for (auto& [reduce, ages] : results_) {
    // In the prologue only what has been computed can grow older.
    const int filled = prologue ? phases - (phases_.level[reduce] - 1) : static_cast<int>(ages.size()) - 1;
    for (int age = std::min(filled, static_cast<int>(ages.size()) - 1); age >= 1; --age) {
      out_.push(copy_instr(ages[age], ages[age - 1], group_.nodes[reduce].dtype));
    }
  }
}

absl::StatusOr<Kernel> LoopLowering::run() {
  if (team_) return run_teams();
  Kernel& kernel = out_.kernel();
  const int64_t blocks = std::max<int64_t>(1, kernel.threads * schedule_[kTasksPerThread]);
  chunk_ = parts_ > 1 ? 1 : std::max<int64_t>(1, (rows_ + blocks - 1) / blocks);
  kernel.grid = rows_ == 0 ? 0 : (rows_ + chunk_ - 1) / chunk_ * parts_;
  if (rows_ == 0) return out_.finish();
  if (parts_ == 1) row_var_ = out_.loop_var("i");
  for (AtomId a : outer_reduced_) outer_vars_.push_back(out_.loop_var(domain_.atoms[a].name));
  if (parts_ > 1) share_out(lanes_);
  if (const int64_t chunk = schedule_[kOnlineChunk]; chunk > 0) {
    vector_tile_ = chunk;
    chunk_var_ = out_.loop_var("part");
  }
  Affine row = row_of_block(chunk_);
  if (row_var_ >= 0) row.add(row_var_, 1);
  if (vector_extent_ % std::max<int64_t>(1, vector_tile_) != 0)
    bound_ = {{}, {sum(fixed(vector_extent_), place_of(row, {}).vector_base, -1)}};
  for (NodeId reduce : phases_.reduces) {
    std::vector<TileId>& ages = results_[reduce];
    const int oldest = pipelined_ ? phases_.count - phases_.level[reduce] : 0;
    for (int age = 0; age <= oldest; ++age) ages.push_back(tile_of(group_.nodes[reduce].dtype, domain_.varies[reduce]));
  }
  std::vector<Affine> trips = {fixed(chunk_)};
  if (rows_ % chunk_ != 0) trips.push_back(affine(kBlockVar, -chunk_, rows_));
  if (pipelined_) {
    emit_pipelined(trips);
  } else {
    if (row_var_ >= 0) out_.open_loop(row_var_, trips);
    for (int phase = 0; phase < phases_.count; ++phase) {
      std::vector<Code> codes;
      codes.push_back(phase_code(phase, place_of(row, {})));
      emit_row(std::move(codes));
    }
    if (row_var_ >= 0) out_.close_loop();
  }
  if (schedule_[kStreamStores] != 0) out_.push(fence_instr());
  return out_.finish();
}

// Note [Row pipeline]: with S phases, iteration i runs phase p on row i + (S-1-p) of the block. Rows beyond the last
// are clamped to it: the last row is then computed more than once, with the same result, and no phase needs a guard or
// an epilogue. The prologue is the iterations -(S-1) .. -1 with the phases that have a row, unrolled. A reduction's
// result is copied to the next age at the end of every iteration; a kept row lives in a ring of S buffers.
void LoopLowering::emit_pipelined(const std::vector<Affine>& trips) {
  const int last_phase = phases_.count - 1;
  const std::vector<Affine> last_row = {affine(kBlockVar, chunk_, chunk_ - 1), fixed(rows_ - 1)};
  for (int t = 0; t < last_phase; ++t) {
    std::vector<Code> codes;
    for (int phase = 0; phase <= t; ++phase) {
      RowPlace place = place_of(affine(kBlockVar, chunk_, t - phase), last_row);
      place.ring = fixed(t - phase);
      codes.push_back(phase_code(phase, std::move(place)));
    }
    emit_row(std::move(codes), true);
  }
  out_.open_loop(row_var_, trips);
  std::vector<Code> codes;
  for (int phase = 0; phase <= last_phase; ++phase) {
    const int64_t ahead = last_phase - phase;
    Affine row = affine(kBlockVar, chunk_, ahead);
    row.add(row_var_, 1);
    RowPlace place = place_of(row, ahead == 0 ? std::vector<Affine>() : last_row);
    place.ring = affine(row_var_, 1, ahead);
    codes.push_back(phase_code(phase, std::move(place)));
  }
  emit_row(std::move(codes));
  out_.close_loop();
}

}  // namespace wl

// The code of a phase (one walk over a row): its reductions, its stores, and the loops around them.
#include <algorithm>

#include "compiler/schedule/nest/lowering.h"

namespace wl {

Instr times_power(TileId result, std::optional<TileId> factor, TileId from, TileId to, bool equal, DType dtype) {
  Instr map;
  map.op = InstrOp::kMap;
  map.result = result;
  const int s = factor ? push_arg(map, *factor, dtype) : equal ? push_constant(map, 1, dtype) : -1;
  const int a = push_arg(map, from, dtype), b = push_arg(map, to, dtype);
  const int same = equal ? push_op(map, Op::eq, DType::b1, {a, b}) : -1;
  int value = push_op(map, Op::exp, dtype, {push_op(map, Op::sub, dtype, {a, b})});
  if (factor) value = push_op(map, Op::mul, dtype, {s, value});
  if (equal) push_op(map, Op::select, dtype, {same, s, value});
  return map;
}

// Appends to `map` the product of a contraction's operands, the first of which is already in `map`, at position
// `first`. `dtype`: the dtype of the product and of the sum. Returns the product's position in `map`.
int RowLowering::product_expr(NodeId contract, int first, DType dtype, Instr& map, PhaseCode& code) {
  int factors[2] = {first, operand_expr(contract, 1, map, code)};
  for (int& factor : factors)
    if (map.expr[factor].dtype != dtype) factor = push_op(map, Op::cast, dtype, {factor});
  return push_op(map, Op::mul, dtype, {factors[0], factors[1]});
}

// Returns the tile with the values that a reduction combines: its operand or, in a contraction, the product of its
// operands.
TileId RowLowering::folded_value(NodeId reduce, DType dtype, PhaseCode& code) {
  Instr operand;
  operand.op = InstrOp::kMap;
  int root = operand_expr(reduce, 0, operand, code);
  if (class_of(group_.nodes[reduce].op) == OpClass::kContract) root = product_expr(reduce, root, dtype, operand, code);
  const auto any = [&](auto is) { return std::any_of(operand.args.begin(), operand.args.end(), is); };
  const bool is_wide = any([&](TileId t) { return is_wide_tile(t); });
  TileId value = operand.expr[root].kind == ExprNode::Kind::kArg ? operand.args[operand.expr[root].arg] : -1;
  if (value < 0) {
    operand.result = new_tile(dtype, is_wide, any([&](TileId t) { return is_tile_across_rows(t); }));
    value = operand.result;
    (is_wide || at_.lanes() == 1 ? code.inner : code.narrow).push_back(std::move(operand));
  }
  // A reduction combines all elements along the vectorised axis. So a value that is the same for all of them is copied
  // to all lanes.
  if (!is_wide && at_.vector_reduced() && at_.lanes() > 1) value = spread(value, code.inner, false);
  return value;
}

// Adds the code of a reduction to a phase: the loops accumulate its operand, and its result is complete after them.
void RowLowering::fold(NodeId reduce, PhaseCode& code) {
  const Node& node = group_.nodes[reduce];
  const auto scope = out_.values_of(reduce);
  const bool products = class_of(node.op) == OpClass::kContract;
  const Op combine = combine_of(node.op);
  // Products of floats narrower than f32 are computed and summed in f32.
  const DType dtype = products && is_float(node.dtype) && size_of(node.dtype) < 4 ? DType::f32 : node.dtype;
  const TileId value = folded_value(reduce, dtype, code);
  const bool is_wide = is_wide_tile(value);
  const bool along_vector = is_wide && at_.vector_reduced();
  const TileId partial = along_vector ? accumulator(dtype) : new_tile(dtype, is_wide, is_tile_across_rows(value));
  code.fills.push_back(fill_instr(partial, identity_of(combine, dtype)));
  const TileId result = results_.at(reduce);
  if (!along_vector) {
    std::vector<Instr>& inside = is_wide || at_.lanes() == 1 ? code.inner : code.narrow;
    inside.push_back(map_instr(partial, combine, dtype, {partial, value}));
    return combine_elements(reduce, combine, partial, result, code);
  }
  code.inner.push_back(fold_instr(partial, value, combine));
  const TileId whole = dtype == node.dtype ? result : out_.like(result, dtype);
  combine_lanes(reduce, combine, partial, whole, code);
  if (whole != result) code.post.push_back(copy_instr(result, whole, node.dtype));
}

// Whether sums of exponentials are computed in the same walk as the maximum `largest`.
bool RowLowering::has_online_sums(NodeId largest) const {
  return std::any_of(phases_.online.begin(), phases_.online.end(),
                     [&](const auto& pair) { return pair.second == largest; });
}

// Returns the tile with the value of an output.
TileId RowLowering::stored_value(const Domain::Store& store, PhaseCode& code) {
  const DType dtype = group_.nodes[group_.outputs[store.output].node].dtype;
  if (!store.pieces.empty()) return load(store.pieces, dtype, code);
  if (store.source < 0) return load(store.copy, dtype, code);
  const Op op = group_.nodes[store.source].op;
  if (op == Op::constant) {
    const TileId tile = tile_of(dtype, at_.atoms_of(store.access));
    code.pre.push_back(fill_instr(tile, group_.nodes[store.source].value));
    return tile;
  }
  if (op == Op::iota) {
    Instr map;
    map.op = InstrOp::kMap;
    iota_expr(store.copy, dtype, map, code);
    map.result = tile_of(dtype, at_.atoms_of(store.copy));
    const TileId tile = map.result;
    code_for(at_.atoms_of(store.copy), code).push_back(std::move(map));
    return tile;
  }
  return get(store.source, code);
}

// Limits a store to the first iteration of those loops around it that do not change its address.
void RowLowering::guard_first_turn(const Access& access, const RowPlace& place, Instr& store) const {
  for (AtomId a : at_.outer_reduced())
    if (domain_.atoms[a].extent > 1 && !access.moves_along(a)) store.guards.push_back({place.atom[a], {0, 0}, 1});
  const bool walks = at_.tile_var() >= 0 || at_.shares_vector();
  if (walks && !access.moves_along(domain_.vector)) store.guards.push_back({place.vector_base, {0, 0}, 1});
}

void RowLowering::store_output(const Domain::Store& store, PhaseCode& code) {
  const std::vector<AtomId> moves = at_.atoms_of(store.access);
  const bool inside = at_.inner(moves), is_wide = at_.wide(moves), across_rows = at_.across_rows(moves);
  // If the value depends on a reduction of this phase, it is computed after the phase's loops.
  const bool after_loops = !inside && store.source >= 0 && phases_.level[store.source] > code.phase;
  PhaseCode after;
  after.phase = at_.parts() > 1 ? code.phase + 1 : code.phase;
  after.place = code.place;
  PhaseCode& into = after_loops ? after : code;
  TileId value = stored_value(store, into);
  if ((is_wide && !is_wide_tile(value)) || (across_rows && !is_tile_across_rows(value)))
    value = spread(value, inside ? code.inner : into.pre, across_rows);
  Instr instr = store_instr(value, at_.slice_of(out_.output_buffer(store.output), store.access, code.place, is_wide),
                            schedule_[kStreamStores] != 0);
  if (inside) {
    if (stores_once()) guard_first_turn(store.access, code.place, instr);
    (is_wide || at_.lanes() == 1 ? code.inner : code.narrow).push_back(std::move(instr));
    return;
  }
  std::vector<Instr>& end = after_loops && at_.parts() > 1 ? code.next_pass : code.post;
  append(end, std::move(after.pre));
  if (at_.row_teams() > 1) instr.guards.push_back({affine(kTeamVar), {0, 0}, 1});
  if (at_.parts() > 1 && !last_block_combines_) instr.guards.push_back({at_.part(), {0, 0}, 1});
  end.push_back(std::move(instr));
}

PhaseCode RowLowering::phase_code(int phase, RowPlace place) {
  PhaseCode code = begin_phase();
  code.phase = phase;
  code.place = std::move(place);
  for (NodeId reduce : phases_.reduces)
    if (phases_.level[reduce] - 1 == phase && !phases_.online.contains(reduce)) {
      if (has_online_sums(reduce))
        fold_online(reduce, code);
      else
        fold(reduce, code);
    }
  for (int store : phases_.stores[phase]) store_output(domain_.stores[store], code);
  for (NodeId reduce : phases_.reduces)
    if (at_.parts() > 1 && phases_.level[reduce] - 1 == phase) store_partial(reduce, code);
  end_phase(code);
  return code;
}

// The instructions `inner` of all phases are printed as one loop, so no other instructions may come between them.
void RowLowering::emit_phases(std::vector<PhaseCode>& codes) {
  for (PhaseCode& code : codes) {
    out_.push_all(std::move(code.fills));
    out_.push_all(std::move(code.pre));
    if (at_.outer_reduced().empty()) out_.push_all(std::move(code.narrow));
  }
  std::vector<std::pair<VarId, std::vector<Affine>>> loops;
  for (size_t i = 0; i < at_.outer_reduced().size(); ++i) loops.emplace_back(at_.outer_vars()[i], at_.outer_trips(i));
  if (at_.tile_var() >= 0) loops.emplace_back(at_.tile_var(), at_.tile_trips());
  for (const auto& [var, trips] : loops) out_.open_loop(var, trips);
  if (!at_.outer_reduced().empty())
    for (PhaseCode& code : codes) out_.push_all(std::move(code.narrow));
  for (PhaseCode& code : codes) out_.push_all(std::move(code.inner));
  for (size_t i = 0; i < loops.size(); ++i) out_.close_loop();
  for (PhaseCode& code : codes) out_.push_all(std::move(code.exchange));
  for (PhaseCode& code : codes) out_.push_all(std::move(code.post));
  for (PhaseCode& code : codes) {
    if (code.partials.empty()) continue;
    out_.push_all(std::move(code.partials));
    out_.push(end_of_phase());
    out_.push_all(std::move(code.next_pass));
  }
}

}  // namespace wl

// The values of a row: loads, computed tiles, expressions, and row buffers for values that a later phase (a later walk
// over the row) reads again.
#include <algorithm>
#include <cstdlib>

#include "compiler/domain/reads.h"
#include "compiler/ir/ranges.h"
#include "compiler/schedule/launch.h"
#include "compiler/schedule/nest/lowering.h"

namespace wl {

void append(std::vector<Instr>& to, std::vector<Instr> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

RowLowering::RowLowering(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine,
                         Widths widths)
    : group_(group),
      domain_(domain),
      schedule_(schedule),
      machine_(machine),
      out_(group, machine),
      phases_(nest_phases(group, domain, schedule[kKeep] == kKeepAll,
                          schedule[kOnline] != 0 || schedule[kOnlineChunk] != 0)),
      at_(group, domain, schedule, machine, widths.lanes, widths.tile, out_) {
  Kernel& kernel = out_.kernel();
  set_launch(kernel, std::string(name_of(domain.cls)), schedule, machine);
  kernel.unroll = static_cast<int>(schedule[kUnroll]);
  kernel.accumulators = static_cast<int>(std::min(schedule[kAccumulators], schedule[kUnroll]));
  last_block_combines_ = at_.parts() > 1 && schedule[kLastBlockCombines] != 0;
}

// Copies a narrow tile (one element along the vectorised axis) to a wide one, whose elements then all have its value.
TileId RowLowering::spread(TileId narrow, std::vector<Instr>& into, bool across_rows) {
  const DType dtype = out_.kernel().tiles[narrow].dtype;
  const TileId result = new_tile(dtype, true, across_rows);
  into.push_back(copy_instr(result, narrow, dtype));
  return result;
}

// Returns the list of a phase's code to which the instruction for a value is added: it depends on the atoms (loops of
// the group) along which the value varies.
std::vector<Instr>& RowLowering::code_for(const std::vector<AtomId>& varies, PhaseCode& code) const {
  if (!at_.inner(varies)) return code.pre;
  return at_.wide(varies) || at_.lanes() == 1 ? code.inner : code.narrow;
}

TileId RowLowering::load(const Access& access, DType dtype, PhaseCode& code) {
  for (const auto& [known, tile] : code.loads)
    if (known == access) return tile;
  const auto scope = out_.values_of(access.input);
  const std::vector<AtomId> varies = at_.atoms_of(access);
  const bool is_wide = at_.wide(varies);
  if (const auto copied = load_copied(access, dtype, code)) {
    code.loads.emplace_back(access, *copied);
    return *copied;
  }
  const TileId tile = tile_of(dtype, varies);
  if (elements(group_.nodes[access.input].shape) == 0) {
    // The input is empty: loops that read the tile never run, but a tile must be defined before it is read.
    code.pre.push_back(fill_instr(tile, 0));
  } else {
    code_for(varies, code)
        .push_back(load_instr(tile, at_.slice_of(out_.input_buffer(access.input), access, code.place, is_wide)));
  }
  code.loads.emplace_back(access, tile);
  return tile;
}

TileId RowLowering::load(const std::vector<Piece>& pieces, DType dtype, PhaseCode& code) {
  for (const auto& [known, tile] : code.joined)
    if (known == pieces) return tile;
  std::vector<AtomId> varies;
  for (const Piece& piece : pieces)
    for (AtomId a : at_.atoms_of(piece.access)) varies.push_back(a);
  const bool is_wide = at_.wide(varies);
  PieceReader reader;
  reader.tile = [&](DType of) { return tile_of(of, varies); };
  reader.push = [&](Instr instr) { code_for(varies, code).push_back(std::move(instr)); };
  reader.slice = [&](const Access& access) {
    return at_.slice_of(out_.input_buffer(access.input), access, code.place, is_wide);
  };
  reader.guard = [&](const Guard& guard) {
    const int64_t along = is_wide ? guard.strides[domain_.vector] : 0;
    const int64_t down = at_.register_rows_atom() >= 0 ? guard.strides[at_.register_rows_atom()] : 0;
    return SliceGuard{at_.index_of(guard.offset, guard.strides, code.place), {down, along}, guard.extent};
  };
  reader.affine = [&](const Access& access, DType of, Instr& map) { return iota_expr(access, of, map, code); };
  const TileId tile = read_pieces(pieces, dtype, reader);
  code.joined.emplace_back(pieces, tile);
  return tile;
}

// Whether a computed operand becomes a part of its only reader's expression instead of a tile of its own.
bool RowLowering::is_inlined(NodeId source, NodeId reader, const PhaseCode& code) const {
  const OpClass cls = class_of(group_.nodes[source].op);
  if (cls != OpClass::kElementwise && (cls != OpClass::kReduce || is_reduction(group_, source))) return false;
  if (phases_.uses[source] != 1 || phases_.kept.contains(source) || code.tiles.contains(source)) return false;
  const std::vector<AtomId>& mine = domain_.varies[reader];
  const std::vector<AtomId>& theirs = domain_.varies[source];
  return at_.wide(mine) == at_.wide(theirs) && at_.across_rows(mine) == at_.across_rows(theirs) &&
         at_.inner(mine) == at_.inner(theirs);
}

// Appends the value of an operand to the expression of `map`, and returns its position there.
int RowLowering::operand_expr(NodeId node, int position, Instr& map, PhaseCode& code) {
  const Domain::Operand& operand = domain_.operands[node][position];
  if (!operand.pieces.empty()) {
    const DType dtype = group_.nodes[group_.nodes[node].operands[position]].dtype;
    if (const auto value = only_constant(operand.pieces)) return push_constant(map, *value, dtype);
    return arg_expr(map, load(operand.pieces, dtype, code));
  }
  if (operand.source < 0) {
    const TileId tile = load(operand.access, group_.nodes[operand.access.input].dtype, code);
    return arg_expr(map, tile);
  }
  const Node& source = group_.nodes[operand.source];
  if (source.op == Op::constant) return push_constant(map, source.value, source.dtype);
  if (source.op == Op::iota) return iota_expr(operand.access, source.dtype, map, code);
  if (is_inlined(operand.source, node, code)) return inline_expr(operand.source, map, code);
  return arg_expr(map, get(operand.source, code));
}

// Appends to `map` the value offset + sum of stride * atom: a scalar part, plus stride * coordinate for each atom that
// tiles run along. Returns the position of the sum in `map`.
int RowLowering::iota_expr(const Access& value, DType dtype, Instr& map, PhaseCode& code) {
  // Makes a tile of coordinates along an axis of tiles; axis -1 makes a scalar.
  const auto tile = [&](int axis, Affine offset, const std::vector<AtomId>& varies) {
    Instr instr;
    instr.op = InstrOp::kIota;
    instr.result = new_tile(dtype, axis == 1, axis == 0);
    instr.axis = std::abs(axis);
    instr.slice.offset = std::move(offset);
    const TileId result = instr.result;
    code_for(varies, code).push_back(std::move(instr));
    return result;
  };
  const int64_t along = domain_.vector >= 0 && at_.lanes() > 1 ? value.strides[domain_.vector] : 0;
  const AtomId rows = at_.register_rows_atom();
  const int64_t down = rows >= 0 ? value.strides[rows] : 0;
  Access rest = value;
  if (along != 0) rest.strides[domain_.vector] = 0;
  if (down != 0) rest.strides[rows] = 0;
  int total = arg_expr(map, tile(-1, at_.slice_of(0, rest, code.place, false).offset, at_.atoms_of(rest)));
  const auto add = [&](int axis, const Affine& offset, AtomId atom, int64_t stride) {
    if (stride == 0) return;
    int coordinate = arg_expr(map, tile(axis, offset, {atom}));
    if (stride != 1)
      coordinate = push_op(map, Op::mul, dtype, {coordinate, push_constant(map, static_cast<double>(stride), dtype)});
    total = push_op(map, Op::add, dtype, {total, coordinate});
  };
  add(1, code.place.vector_base, domain_.vector, along);
  if (down != 0) add(0, code.place.atom[rows], rows, down);
  return total;
}

// Appends the expression of a node to `map`, and returns its position there.
int RowLowering::inline_expr(NodeId node, Instr& map, PhaseCode& code) {
  if (class_of(group_.nodes[node].op) == OpClass::kReduce) return operand_expr(node, 0, map, code);
  ExprNode root;
  root.op = group_.nodes[node].op;
  root.dtype = group_.nodes[node].dtype;
  root.origin = {.node = node};
  for (size_t i = 0; i < group_.nodes[node].operands.size(); ++i)
    root.operands[i] = operand_expr(node, static_cast<int>(i), map, code);
  map.expr.push_back(root);
  return static_cast<int>(map.expr.size()) - 1;
}

// Returns the instruction of a gather. Its index is always a tile; if the index is computed, the map that computes it
// is emitted first.
Instr RowLowering::gather(NodeId node, PhaseCode& code) {
  const std::vector<AtomId>& varies = domain_.varies[node];
  const Domain::Operand& from = domain_.operands[node][0];
  Instr index;
  index.op = InstrOp::kMap;
  const int root = operand_expr(node, 1, index, code);
  Instr instr;
  instr.op = InstrOp::kGather;
  if (index.expr[root].kind == ExprNode::Kind::kArg) {
    instr.args = {index.args[index.expr[root].arg]};
  } else {
    instr.args = {index.result = tile_of(index.expr[root].dtype, varies)};
    code_for(varies, code).push_back(std::move(index));
  }
  instr.slice = at_.slice_of(out_.input_buffer(from.access.input), from.access, code.place, at_.wide(varies));
  instr.gather_stride = from.gather_stride;
  instr.gather_extent = from.gather_extent;
  instr.gather_inside = takes_inside([this](NodeId id) -> const Node& { return group_.nodes[id]; }, group_.nodes[node]);
  return instr;
}

TileId RowLowering::compute(NodeId node, PhaseCode& code) {
  const Node& n = group_.nodes[node];
  const auto scope = out_.values_of(node);
  const std::vector<AtomId>& varies = domain_.varies[node];
  Instr instr;
  if (class_of(n.op) == OpClass::kGather) {
    instr = gather(node, code);
  } else {
    instr.op = InstrOp::kMap;
    inline_expr(node, instr, code);
  }
  const TileId tile = instr.result = tile_of(n.dtype, varies);
  code_for(varies, code).push_back(std::move(instr));
  return tile;
}

// Returns the tile with the value of a node in a phase. The tile exists already, is loaded from a row buffer, or is
// computed.
TileId RowLowering::get(NodeId node, PhaseCode& code) {
  const Node& n = group_.nodes[node];
  if (is_reduction(group_, node)) return at_.parts() > 1 ? combined(node, code) : result_in(code.phase, node);
  if (const auto it = code.tiles.find(node); it != code.tiles.end()) return it->second;
  TileId tile = -1;
  const auto kept = phases_.kept.find(node);
  if (kept != phases_.kept.end() && kept->second < code.phase) {
    tile = make_tile(n.dtype, true);
    code.inner.push_back(load_instr(tile, kept_slice(node, code)));
  } else {
    tile = compute(node, code);
    if (kept != phases_.kept.end() && kept->second == code.phase)
      code.inner.push_back(store_instr(tile, kept_slice(node, code), false));
  }
  code.tiles[node] = tile;
  return tile;
}

// Returns the place of a kept value (one that a later phase loads again) in its row buffer, whose slots kept_slot()
// numbers.
Slice RowLowering::kept_slice(NodeId node, const PhaseCode& code) {
  const int64_t stagger = schedule_[kStagger];
  const DType dtype = group_.nodes[node].dtype;
  int64_t row = at_.row_extent();
  for (AtomId a : at_.outer_reduced()) row *= domain_.atoms[a].extent;
  row = (row + 63) / 64 * 64 + stagger / size_of(dtype);
  const KeptSlot kept = kept_slot(code);
  const auto [buffer, is_new] = kept_buffers_.try_emplace(node, -1);
  if (is_new) buffer->second = out_.shared(cat("row", node), dtype, {kept.slots, row}, stagger);
  Slice out;
  out.buffer = buffer->second;
  out.strides = {0, 1};
  out.offset = sum(std::move(out.offset), kept.slot, row);
  if (at_.tile_var() >= 0) out.offset.add(at_.tile_var(), at_.tile());
  int64_t stride = at_.row_extent();
  for (size_t i = at_.outer_reduced().size(); i-- > 0;) {
    const AtomId atom = at_.outer_reduced()[i];
    out.offset = sum(std::move(out.offset), code.place.atom[atom], stride);
    stride *= domain_.atoms[atom].extent;
  }
  return out;
}

}  // namespace wl

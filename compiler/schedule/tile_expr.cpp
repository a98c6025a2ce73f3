#include "compiler/schedule/tile_expr.h"

#include <algorithm>

#include "compiler/domain/phases.h"

namespace wl {
namespace {

Affine index_of(int64_t offset, const std::vector<int64_t>& strides, const Place& place) {
  Affine index = fixed(offset);
  for (size_t a = 0; a < strides.size(); ++a)
    if (strides[a] != 0) index = sum(std::move(index), place[a], strides[a]);
  return index;
}

// Returns the strides along the axes of a tile; 0 for an axis without an atom.
std::vector<int64_t> along(const std::vector<int64_t>& strides, const std::vector<AtomId>& axes) {
  std::vector<int64_t> out;
  for (const AtomId atom : axes) out.push_back(atom >= 0 ? strides[atom] : 0);
  return out;
}

}  // namespace

Slice slice_at(BufferId buffer, const Access& access, const Place& place, const std::vector<AtomId>& axes) {
  Slice out;
  out.buffer = buffer;
  out.offset = index_of(access.offset, access.strides, place);
  out.strides = along(access.strides, axes);
  return out;
}

SliceGuard guard_at(const Guard& guard, const Place& place, const std::vector<AtomId>& axes) {
  return {index_of(guard.offset, guard.strides, place), along(guard.strides, axes), guard.extent};
}

TileId turned_square(KernelBuilder& out, DType dtype, const Access& access, const Place& place, AtomId axis0,
                     AtomId axis1, int lanes, int64_t width, std::vector<Instr>& into) {
  const TileId across = out.tile(dtype, {lanes, width}, 0, lanes);
  into.push_back(load_instr(across, slice_at(out.input_buffer(access.input), access, place, {axis0, axis1})));
  const TileId along = out.tile(dtype, {lanes, width}, 1, lanes);
  into.push_back(convert_instr(along, across));
  return along;
}

std::vector<AtomId> TileExpr::axes() const {
  std::vector<AtomId> atoms;
  for (const TileLoop& loop : loops) atoms.push_back(loop.atom);
  return atoms;
}

TileId TileExpr::tile(DType dtype) const {
  return shaped(dtype, std::vector<bool>(loops.size(), true));
}

TileId TileExpr::shaped(DType dtype, const std::vector<bool>& moves) const {
  std::vector<std::vector<Affine>> end = moves.back() ? bound : std::vector<std::vector<Affine>>();
  if (layout) return out.tile({dtype, layout(moves), std::move(end)});
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < loops.size(); ++axis) shape.push_back(moves[axis] ? loops[axis].extent : 1);
  const bool vectors = moves.back() && lanes > 1;
  return out.tile(dtype, std::move(shape), vectors ? static_cast<int>(loops.size()) - 1 : -1, vectors ? lanes : 1,
                  std::move(end));
}

TileId TileExpr::load_input(const Access& access) {
  const auto scope = out.values_of(access.input);
  std::vector<bool> moves;
  for (const TileLoop& loop : loops) moves.push_back(whole || (loop.atom >= 0 && access.strides[loop.atom] != 0));
  const TileId result = shaped(group.nodes[access.input].dtype, moves);
  code.push_back(load_instr(result, slice_at(out.input_buffer(access.input), access, place, axes())));
  return result;
}

// Appends to `map` the value offset + sum of stride * atom, as the sum of a scalar and of stride * coordinate for each
// axis along which the value varies. Returns its position in `map`.
int TileExpr::affine_expr(const Access& value, DType dtype, Instr& map) {
  const auto iota = [&](TileId result, int axis, Affine from, size_t at) {
    Instr instr;
    instr.op = InstrOp::kIota;
    instr.result = result;
    instr.axis = axis;
    instr.slice.offset = std::move(from);
    code.insert(code.begin() + static_cast<int64_t>(at), std::move(instr));
    return push_arg(map, result, dtype);
  };
  // The scalar's instruction is placed before all others: if it stood between them, they could not be printed as one
  // loop.
  const std::vector<bool> none(loops.size(), false);
  int total = iota(shaped(dtype, none), 0, index_of(value.offset, value.strides, place), 0);
  for (size_t axis = 0; axis < loops.size(); ++axis) {
    const AtomId atom = loops[axis].atom;
    if (atom < 0 || value.strides[atom] == 0) continue;
    int term = iota(tile(dtype), static_cast<int>(axis), fixed(0), code.size());
    if (value.strides[atom] != 1) {
      const int stride = push_constant(map, static_cast<double>(value.strides[atom]), dtype);
      term = push_op(map, Op::mul, dtype, {term, stride});
    }
    total = push_op(map, Op::add, dtype, {total, term});
  }
  return total;
}

TileId TileExpr::load_pieces(const std::vector<Piece>& pieces, DType dtype) {
  std::vector<bool> moves;
  for (const TileLoop& loop : loops)
    moves.push_back(whole || (loop.atom >= 0 && std::any_of(pieces.begin(), pieces.end(), [&loop](const Piece& p) {
                                return p.access.moves_along(loop.atom);
                              })));
  PieceReader reader;
  reader.tile = [&](DType of) { return shaped(of, moves); };
  reader.push = [&](Instr instr) { code.push_back(std::move(instr)); };
  reader.slice = [&](const Access& access) { return slice_at(out.input_buffer(access.input), access, place, axes()); };
  reader.guard = [&](const Guard& guard) { return guard_at(guard, place, axes()); };
  reader.affine = [&](const Access& access, DType of, Instr& map) { return affine_expr(access, of, map); };
  return read_pieces(pieces, dtype, reader);
}

absl::StatusOr<int> TileExpr::leaf(NodeId node, int position, Instr& map, std::map<NodeId, int>& memo) {
  const Domain::Operand& operand = domain.operands[node][position];
  if (!operand.pieces.empty()) {
    const DType dtype = group.nodes[group.nodes[node].operands[position]].dtype;
    if (const auto value = only_constant(operand.pieces)) return push_constant(map, *value, dtype);
    return push_arg(map, load_pieces(operand.pieces, dtype), dtype);
  }
  if (operand.source >= 0 && group.nodes[operand.source].op == Op::iota)
    return affine_expr(operand.access, group.nodes[operand.source].dtype, map);
  if (operand.source >= 0) return expression(operand.source, map, memo);
  if (operand.gather_extent != 0) return unimplemented("a gather in a tiled loop: %", node);
  TileId tile = load ? load(operand.access) : -1;
  if (tile < 0) tile = load_input(operand.access);
  return push_arg(map, tile, out.kernel().tiles[tile].dtype);
}

absl::StatusOr<int> TileExpr::expression(NodeId node, Instr& map, std::map<NodeId, int>& memo) {
  if (const auto it = memo.find(node); it != memo.end()) return it->second;
  const Node& n = group.nodes[node];
  ExprNode root;
  root.dtype = n.dtype;
  if (const auto it = known.find(node); it != known.end()) {
    root.kind = ExprNode::Kind::kArg;
    root.arg = static_cast<int>(map.args.size());
    map.args.push_back(it->second);
  } else if (n.op == Op::constant) {
    root.kind = ExprNode::Kind::kConstant;
    root.value = n.value;
  } else if (class_of(n.op) == OpClass::kReduce && !is_reduction(group, node)) {
    return leaf(node, 0, map, memo);
  } else if (class_of(n.op) == OpClass::kElementwise) {
    root.op = n.op;
    root.origin = {.node = node};
    for (size_t i = 0; i < domain.operands[node].size(); ++i) {
      WL_ASSIGN_OR_RETURN(root.operands[i], leaf(node, static_cast<int>(i), map, memo));
    }
  } else {
    return unimplemented("%", node, " ", name_of(n.op), " in a tiled loop");
  }
  map.expr.push_back(root);
  return memo[node] = static_cast<int>(map.expr.size()) - 1;
}

TileId TileExpr::finish(Instr map, int root, DType dtype) {
  const ExprNode& node = map.expr[root];
  if (node.kind == ExprNode::Kind::kArg) {
    const Tile& same = out.kernel().tiles[map.args[node.arg]];
    const bool all = std::equal(loops.begin(), loops.end(), same.layout.shape.begin(), same.layout.shape.end(),
                                [](const TileLoop& loop, int64_t extent) { return loop.extent == extent; });
    if (all && same.bound == bound) return map.args[node.arg];
  }
  map.op = InstrOp::kMap;
  map.result = tile(dtype);
  const TileId result = map.result;
  code.push_back(std::move(map));
  return result;
}

absl::StatusOr<TileId> TileExpr::value(NodeId node) {
  const auto scope = out.values_of(node);
  Instr map;
  std::map<NodeId, int> memo;
  WL_ASSIGN_OR_RETURN(const int root, expression(node, map, memo));
  return finish(std::move(map), root, group.nodes[node].dtype);
}

absl::StatusOr<TileId> TileExpr::operand(NodeId node, int position) {
  const auto scope = out.values_of(group.nodes[node].operands[position]);
  Instr map;
  std::map<NodeId, int> memo;
  WL_ASSIGN_OR_RETURN(const int root, leaf(node, position, map, memo));
  return finish(std::move(map), root, group.nodes[group.nodes[node].operands[position]].dtype);
}

}  // namespace wl

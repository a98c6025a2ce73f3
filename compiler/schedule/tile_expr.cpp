#include "compiler/schedule/tile_expr.h"

#include <algorithm>

#include "compiler/plan/phases.h"

namespace wl {

Slice slice_at(BufferId buffer, const Access& access, const Place& place, AtomId axis0, AtomId axis1) {
  Slice out;
  out.buffer = buffer;
  out.offset.base = access.offset;
  for (size_t a = 0; a < access.strides.size(); ++a)
    if (access.strides[a] != 0) out.offset = sum(std::move(out.offset), place[a], access.strides[a]);
  out.strides = {axis0 >= 0 ? access.strides[axis0] : 0, axis1 >= 0 ? access.strides[axis1] : 0};
  return out;
}

TileId turned_square(KernelBuilder& out, DType dtype, const Access& access, const Place& place, AtomId axis0,
                     AtomId axis1, int lanes, int64_t width, std::vector<Instr>& into) {
  const TileId across = out.tile(dtype, {lanes, width}, 0, lanes);
  into.push_back(load_instr(across, slice_at(out.input_buffer(access.input), access, place, axis0, axis1)));
  const TileId along = out.tile(dtype, {lanes, width}, 1, lanes);
  into.push_back(convert_instr(along, across));
  return along;
}

TileExpr tile_expr(const Graph& group, const Domain& domain, KernelBuilder& out, const Place& place,
                   const std::array<TileLoop, 2>& loops, std::function<Layout(bool, bool)> layout) {
  TileExpr made{group, domain, out,     place, loops[0].atom, loops[1].atom, loops[0].extent, loops[1].extent, 1, {},
                false, {},     nullptr, {}};
  made.layout = std::move(layout);
  return made;
}

TileId TileExpr::tile(DType dtype) const {
  if (layout) return out.tile({dtype, layout(true, true), bound});
  return out.tile(dtype, {extent0, extent1}, lanes > 1 ? 1 : -1, lanes, bound);
}

TileId TileExpr::shaped(DType dtype, bool move0, bool move1) const {
  if (layout) return out.tile({dtype, layout(move0, move1), move1 ? bound : std::vector<std::vector<Affine>>()});
  return out.tile(dtype, {move0 ? extent0 : 1, move1 ? extent1 : 1}, move1 && lanes > 1 ? 1 : -1, move1 ? lanes : 1,
                  move1 ? bound : std::vector<std::vector<Affine>>());
}

TileId TileExpr::load_input(const Access& access) {
  const TileId result = shaped(group.nodes[access.input].dtype, whole || (axis0 >= 0 && access.strides[axis0] != 0),
                               whole || (axis1 >= 0 && access.strides[axis1] != 0));
  code.push_back(load_instr(result, slice_at(out.input_buffer(access.input), access, place, axis0, axis1)));
  return result;
}

Affine TileExpr::index_of(int64_t offset, const std::vector<int64_t>& strides) const {
  Affine index = fixed(offset);
  for (size_t a = 0; a < strides.size(); ++a)
    if (strides[a] != 0) index = sum(std::move(index), place[a], strides[a]);
  return index;
}

// The sum of a scalar and of stride * coordinate for each axis that the value moves along.
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
  // A scalar among the others would end the loop that they share.
  int total = iota(shaped(dtype, false, false), 0, index_of(value.offset, value.strides), 0);
  for (int axis : {0, 1}) {
    const AtomId atom = axis == 0 ? axis0 : axis1;
    if (atom < 0 || value.strides[atom] == 0) continue;
    int term = iota(tile(dtype), axis, fixed(0), code.size());
    if (value.strides[atom] != 1) {
      const int stride = push_constant(map, static_cast<double>(value.strides[atom]), dtype);
      term = push_op(map, Op::mul, dtype, {term, stride});
    }
    total = push_op(map, Op::add, dtype, {total, term});
  }
  return total;
}

TileId TileExpr::load_pieces(const std::vector<Piece>& pieces, DType dtype) {
  const auto moves = [&](AtomId atom) {
    return whole || (atom >= 0 && std::any_of(pieces.begin(), pieces.end(),
                                              [atom](const Piece& p) { return p.access.moves_along(atom); }));
  };
  const bool move0 = moves(axis0), move1 = moves(axis1);
  PieceReader reader;
  reader.tile = [&](DType of) { return shaped(of, move0, move1); };
  reader.push = [&](Instr instr) { code.push_back(std::move(instr)); };
  reader.slice = [&](const Access& access) {
    return slice_at(out.input_buffer(access.input), access, place, axis0, axis1);
  };
  reader.guard = [&](const Guard& guard) {
    return SliceGuard{index_of(guard.offset, guard.strides),
                      {axis0 >= 0 ? guard.strides[axis0] : 0, axis1 >= 0 ? guard.strides[axis1] : 0},
                      guard.extent};
  };
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
    if (same.layout.shape == std::vector<int64_t>{extent0, extent1} && same.bound == bound) return map.args[node.arg];
  }
  map.op = InstrOp::kMap;
  map.result = tile(dtype);
  const TileId result = map.result;
  code.push_back(std::move(map));
  return result;
}

absl::StatusOr<TileId> TileExpr::value(NodeId node) {
  Instr map;
  std::map<NodeId, int> memo;
  WL_ASSIGN_OR_RETURN(const int root, expression(node, map, memo));
  return finish(std::move(map), root, group.nodes[node].dtype);
}

absl::StatusOr<TileId> TileExpr::operand(NodeId node, int position) {
  Instr map;
  std::map<NodeId, int> memo;
  WL_ASSIGN_OR_RETURN(const int root, leaf(node, position, map, memo));
  return finish(std::move(map), root, group.nodes[group.nodes[node].operands[position]].dtype);
}

}  // namespace wl

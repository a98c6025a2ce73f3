#include "compiler/lower/tile_expr.h"

#include <algorithm>

namespace wl {

Affine sum(Affine a, const Affine& b, int64_t factor) {
  a.base += b.base * factor;
  for (const auto& [var, coefficient] : b.terms) a.add(var, coefficient * factor);
  return a;
}

Slice slice_at(BufferId buffer, const Access& access, const Place& place, AtomId axis0, AtomId axis1) {
  Slice out;
  out.buffer = buffer;
  out.offset.base = access.offset;
  for (size_t a = 0; a < access.strides.size(); ++a)
    if (access.strides[a] != 0) out.offset = sum(std::move(out.offset), place[a], access.strides[a]);
  out.strides = {axis0 >= 0 ? access.strides[axis0] : 0, axis1 >= 0 ? access.strides[axis1] : 0};
  return out;
}

TileId TileExpr::tile(DType dtype) const {
  return out.tile(dtype, {extent0, extent1}, lanes > 1 ? 1 : -1, lanes, bound);
}

TileId TileExpr::load_input(const Access& access) {
  const bool move0 = whole || (axis0 >= 0 && access.strides[axis0] != 0);
  const bool move1 = whole || (axis1 >= 0 && access.strides[axis1] != 0);
  const DType dtype = group.nodes[access.input].dtype;
  const TileId result = out.tile(dtype, {move0 ? extent0 : 1, move1 ? extent1 : 1}, move1 && lanes > 1 ? 1 : -1,
                                 move1 ? lanes : 1, move1 ? bound : std::vector<std::vector<Affine>>());
  code.push_back(load_instr(result, slice_at(out.input_buffer(access.input), access, place, axis0, axis1)));
  return result;
}

absl::StatusOr<int> TileExpr::leaf(const Domain::Operand& operand, Instr& map, std::map<NodeId, int>& memo) {
  if (operand.source >= 0 && group.nodes[operand.source].op != Op::iota) return expression(operand.source, map, memo);
  if (operand.source >= 0 || operand.gather_extent != 0)
    return unimplemented("an index or a gather in a tiled loop: %", operand.source);
  TileId tile = load ? load(operand.access) : -1;
  if (tile < 0) tile = load_input(operand.access);
  map.expr.push_back({ExprNode::Kind::kArg,
                      Op::add,
                      out.kernel().tiles[tile].dtype,
                      static_cast<int>(map.args.size()),
                      0,
                      {-1, -1, -1}});
  map.args.push_back(tile);
  return static_cast<int>(map.expr.size()) - 1;
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
    return leaf(domain.operands[node][0], map, memo);
  } else if (class_of(n.op) == OpClass::kElementwise) {
    root.op = n.op;
    for (size_t i = 0; i < domain.operands[node].size(); ++i) {
      WL_ASSIGN_OR_RETURN(root.operands[i], leaf(domain.operands[node][i], map, memo));
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
  WL_ASSIGN_OR_RETURN(const int root, leaf(domain.operands[node][position], map, memo));
  return finish(std::move(map), root, group.nodes[group.nodes[node].operands[position]].dtype);
}

}  // namespace wl

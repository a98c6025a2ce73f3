#include "compiler/schedule/pieces.h"

#include <algorithm>

namespace wl {
namespace {

// Appends to `map` the condition that all guards of a piece hold. Returns the condition's position; -1 without guards.
int condition(const Piece& piece, const PieceReader& reader, Instr& map) {
  int all = -1;
  const auto both = [&](int one) { all = all < 0 ? one : push_op(map, Op::logical_and, DType::b1, {all, one}); };
  for (const Guard& guard : piece.access.guards) {
    Access coordinate;
    coordinate.offset = guard.offset;
    coordinate.strides = guard.strides;
    const int at = reader.affine(coordinate, DType::i64, map);
    both(push_op(map, Op::ge, DType::b1, {at, push_constant(map, 0, DType::i64)}));
    both(push_op(map, Op::lt, DType::b1, {at, push_constant(map, static_cast<double>(guard.extent), DType::i64)}));
  }
  return all;
}

}  // namespace

int push_constant(Instr& map, double value, DType dtype) {
  map.expr.push_back({ExprNode::Kind::kConstant, Op::add, dtype, -1, value, {-1, -1, -1}});
  return static_cast<int>(map.expr.size()) - 1;
}

int push_arg(Instr& map, TileId tile, DType dtype) {
  const auto known = std::find(map.args.begin(), map.args.end(), tile);
  const int position = static_cast<int>(known - map.args.begin());
  if (known == map.args.end()) map.args.push_back(tile);
  map.expr.push_back({ExprNode::Kind::kArg, Op::add, dtype, position, 0, {-1, -1, -1}});
  return static_cast<int>(map.expr.size()) - 1;
}

int push_op(Instr& map, Op op, DType dtype, std::vector<int> operands) {
  ExprNode node{ExprNode::Kind::kOp, op, dtype, -1, 0, {-1, -1, -1}};
  std::copy(operands.begin(), operands.end(), node.operands);
  map.expr.push_back(node);
  return static_cast<int>(map.expr.size()) - 1;
}

std::optional<double> only_constant(const std::vector<Piece>& pieces) {
  if (pieces.size() != 1 || !pieces[0].constant) return std::nullopt;
  return pieces[0].value;
}

TileId read_pieces(const std::vector<Piece>& pieces, DType dtype, const PieceReader& reader) {
  TileId there = -1;  // the tile with the value of the pieces read so far; -1: their value is the constant `value`
  double value = 0;
  for (size_t i = pieces.size(); i-- > 0;) {
    const Piece& piece = pieces[i];
    const bool guarded = !piece.access.guards.empty();
    if (piece.constant && !guarded) {
      value = piece.value;
      continue;
    }
    Instr instr;
    if (!piece.constant && piece.source < 0) {
      instr = load_instr(-1, reader.slice(piece.access));
      for (const Guard& guard : piece.access.guards) instr.guards.push_back(reader.guard(guard));
      if (guarded && there >= 0) instr.args = {there};
      if (guarded && there < 0) instr.value = value;
    } else {
      instr.op = InstrOp::kMap;
      const int holds = guarded ? condition(piece, reader, instr) : -1;
      const int mine =
          piece.constant ? push_constant(instr, piece.value, dtype) : reader.affine(piece.access, dtype, instr);
      if (guarded) {
        const int other = there >= 0 ? push_arg(instr, there, dtype) : push_constant(instr, value, dtype);
        push_op(instr, Op::select, dtype, {holds, mine, other});
      }
    }
    instr.result = there = reader.tile(dtype);
    reader.push(std::move(instr));
  }
  if (there >= 0) return there;
  Instr splat;
  splat.op = InstrOp::kMap;
  push_constant(splat, value, dtype);
  splat.result = there = reader.tile(dtype);
  reader.push(std::move(splat));
  return there;
}

}  // namespace wl

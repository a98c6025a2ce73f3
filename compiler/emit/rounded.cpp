#include "compiler/emit/rounded.h"

#include <span>

#include "compiler/kernel/instrs.h"

namespace wl {
namespace {

bool rounds(const Instr& instr) {
  if (instr.op == InstrOp::kLoad) return instr.guards.empty();
  return instr.op == InstrOp::kMap && !instr.expr.empty() && instr.expr.back().kind == ExprNode::Kind::kOp &&
         instr.expr.back().op == Op::cast;
}

void collect(const Kernel& kernel, std::span<const Instr> body, std::set<TileId>* rounded, std::set<TileId>* others) {
  for (const Instr& instr : body) {
    if (instr.op == InstrOp::kLoop) collect(kernel, instr.body, rounded, others);
    if (info(instr.op).result == InstrResult::kNoResult || instr.result < 0) continue;
    if (kernel.tiles[instr.result].dtype == DType::bf16) (rounds(instr) ? rounded : others)->insert(instr.result);
  }
}

}  // namespace

std::set<TileId> rounded_tiles(const Kernel& kernel) {
  std::set<TileId> rounded, others;
  collect(kernel, kernel.body, &rounded, &others);
  for (const TileId tile : others) rounded.erase(tile);
  return rounded;
}

}  // namespace wl

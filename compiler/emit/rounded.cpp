#include "compiler/emit/rounded.h"

#include "compiler/kernel/instrs.h"

namespace wl {
namespace {

bool rounds(const Instr& instr) {
  if (instr.op == InstrOp::kLoad) return instr.guards.empty();
  return instr.op == InstrOp::kMap && !instr.expr.empty() && instr.expr.back().kind == ExprNode::Kind::kOp &&
         instr.expr.back().op == Op::cast;
}

}  // namespace

std::set<TileId> rounded_tiles(const Kernel& kernel) {
  std::set<TileId> rounded, others;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (info(instr.op).result == InstrResult::kNoResult || instr.result < 0) return;
    if (kernel.tiles[instr.result].dtype == DType::bf16) (rounds(instr) ? rounded : others).insert(instr.result);
  });
  for (const TileId tile : others) rounded.erase(tile);
  return rounded;
}

}  // namespace wl

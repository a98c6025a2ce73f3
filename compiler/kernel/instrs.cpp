#include "compiler/kernel/instrs.h"

namespace wl {

std::span<const InstrInfo> instrs() {
  using enum Operand;
  using enum InstrResult;
  using enum InstrSpace;
  using enum InstrStretch;
  using enum SliceUse;
  using enum Order;
  using enum InstrLanes;
#define WL_LIST(...) \
  { __VA_ARGS__ }
#define WL_INSTR(id, name, operands, result, space, stretch, use, order, lanes, ...) \
  {InstrOp::id, name, WL_LIST operands, result, space, stretch, use, order, lanes},
  static constexpr InstrInfo kInstrs[] = {
#include "compiler/kernel/instrs.def"
  };
#undef WL_LIST
  return kInstrs;
}

const InstrInfo& info(InstrOp op) {
  return instrs()[static_cast<size_t>(op)];
}

}  // namespace wl

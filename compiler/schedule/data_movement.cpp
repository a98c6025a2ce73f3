#include "compiler/schedule/data_movement.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "compiler/plan/reads.h"

namespace wl {
namespace {

void each_instr(std::vector<Instr>& body, const std::function<void(Instr&)>& visit) {
  for (Instr& instr : body) {
    visit(instr);
    each_instr(instr.body, visit);
  }
}

// 32-bit registers of a thread.
int64_t registers_of(const Tile& tile) {
  int64_t registers = std::max<int64_t>(1, size_of(tile.dtype) / 4) * tile.layout.lanes();
  for (int axis = 0; axis < tile.layout.rank(); ++axis) registers *= tile.layout.repeats(axis);
  return registers;
}

}  // namespace

bool depends_on(const Kernel& kernel, const Affine& affine, VarId var) {
  return std::any_of(affine.terms.begin(), affine.terms.end(), [&](const auto& term) {
    if (term.first == var) return true;
    const Var& v = kernel.vars[term.first];
    return std::any_of(v.of.begin(), v.of.end(), [&](const Affine& a) { return depends_on(kernel, a, var); });
  });
}

void hoist_loads(Kernel& kernel, VarId loop) {
  // Measured on sm_80: 192 floats of a lane fit, 256 do not; the rest is for addresses and loads in flight.
  constexpr int64_t kFit = 168;
  const auto at = std::find_if(kernel.body.begin(), kernel.body.end(),
                               [loop](const Instr& instr) { return instr.op == InstrOp::kLoop && instr.var == loop; });
  if (at == kernel.body.end()) return;
  int64_t held = 0;
  for (const Instr& instr : at->body)
    if (instr.result >= 0) held = std::max(held, registers_of(kernel.tiles[instr.result]));
  const auto same = [&](const Affine& affine) { return !depends_on(kernel, affine, loop); };
  const auto all_same = [&](const std::vector<Affine>& affines) {
    return std::all_of(affines.begin(), affines.end(), same);
  };
  std::vector<Instr> before, inside;
  for (Instr& instr : at->body) {
    bool goes = instr.op == InstrOp::kLoad && instr.args.empty() && same(instr.slice.offset) &&
                kernel.buffers[instr.slice.buffer].level == Level::kGlobal &&
                !kernel.buffers[instr.slice.buffer].output &&
                std::all_of(instr.guards.begin(), instr.guards.end(), [&](const SliceGuard& g) { return same(g.at); });
    if (goes) {
      const Tile& tile = kernel.tiles[instr.result];
      goes = std::all_of(tile.bound.begin(), tile.bound.end(), all_same) && held + registers_of(tile) <= kFit;
      if (goes) held += registers_of(tile);
    }
    (goes ? before : inside).push_back(std::move(instr));
  }
  at->body = std::move(inside);
  kernel.body.insert(at, std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
}

void stream_loads(Kernel& kernel, const Graph& group, const Domain& domain) {
  const std::vector<NodeId> inputs = group.inputs();
  std::vector<int> readers(kernel.buffers.size(), 0);
  each_instr(kernel.body, [&](Instr& instr) {
    if (instr.op == InstrOp::kLoad || instr.op == InstrOp::kGather) ++readers[instr.slice.buffer];
  });
  const std::vector<NodeId> once = inputs_read_once(group, domain);
  each_instr(kernel.body, [&](Instr& instr) {
    if (instr.op != InstrOp::kLoad || instr.slice.buffer >= static_cast<BufferId>(inputs.size())) return;
    instr.streaming = readers[instr.slice.buffer] == 1 &&
                      std::find(once.begin(), once.end(), inputs[instr.slice.buffer]) != once.end();
  });
}

}  // namespace wl

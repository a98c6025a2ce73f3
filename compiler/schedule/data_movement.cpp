#include "compiler/schedule/data_movement.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/domain/reads.h"

namespace wl {
namespace {

// Whether an expression depends on a variable, directly or through derived variables.
bool depends_on(const Kernel& kernel, const Affine& affine, VarId var) {
  return std::any_of(affine.terms.begin(), affine.terms.end(), [&](const auto& term) {
    if (term.first == var) return true;
    const Var& v = kernel.vars[term.first];
    return std::any_of(v.of.begin(), v.of.end(), [&](const Affine& a) { return depends_on(kernel, a, var); });
  });
}

// Whether an instruction accesses the same elements, with the same bounds of its tile, in every iteration of a loop.
bool is_same(const Kernel& kernel, const Instr& instr, VarId loop) {
  const auto same = [&](const Affine& affine) { return !depends_on(kernel, affine, loop); };
  const std::vector<std::vector<Affine>>& bound = kernel.tiles[instr.result].bound;
  return same(instr.slice.offset) &&
         std::all_of(instr.guards.begin(), instr.guards.end(), [&](const SliceGuard& g) { return same(g.at); }) &&
         std::all_of(bound.begin(), bound.end(),
                     [&](const std::vector<Affine>& axis) { return std::all_of(axis.begin(), axis.end(), same); });
}

// Moves those instructions of a loop for which goes() is true to the place before the loop, in their order.
template <typename Goes>
void hoist(Kernel& kernel, std::vector<Instr>::iterator loop, Goes goes) {
  std::vector<Instr> before, inside;
  for (Instr& instr : loop->body) {
    std::vector<Instr>& to = goes(instr) ? before : inside;
    to.push_back(std::move(instr));
  }
  loop->body = std::move(inside);
  kernel.body.insert(loop, std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
}

// The number of 32-bit registers that a tile takes in each thread.
int64_t registers_of(const Tile& tile) {
  int64_t registers = std::max<int64_t>(1, size_of(tile.dtype) / 4) * tile.layout.lanes();
  for (int axis = 0; axis < tile.layout.rank(); ++axis) registers *= tile.layout.repeats(axis);
  return registers;
}

}  // namespace

std::vector<int> times_made(const Kernel& kernel) {
  std::vector<int> out(kernel.tiles.size(), 0);
  each_instr(kernel.body, [&](const Instr& instr) {
    if (instr.result >= 0) ++out[instr.result];
  });
  return out;
}

bool loads_input(const Kernel& kernel, const Instr& instr) {
  if (instr.op != InstrOp::kLoad) return false;
  const KernelBuffer& buffer = kernel.buffers[instr.slice.buffer];
  return buffer.level == Level::kGlobal && !buffer.output;
}

std::vector<Instr>::iterator find_loop(Kernel& kernel, VarId var) {
  return std::find_if(kernel.body.begin(), kernel.body.end(),
                      [var](const Instr& instr) { return instr.op == InstrOp::kLoop && instr.var == var; });
}

void hoist_loads(Kernel& kernel, VarId loop) {
  // The most 32-bit registers of a thread that tiles may take. Measured on sm_80: 192 fit and 256 do not. The limit is
  // lower to leave registers for addresses and for loads in flight.
  constexpr int64_t kFit = 168;
  const auto at = find_loop(kernel, loop);
  if (at == kernel.body.end()) return;
  int64_t held = 0;
  for (const Instr& instr : at->body)
    if (instr.result >= 0) held = std::max(held, registers_of(kernel.tiles[instr.result]));
  hoist(kernel, at, [&](const Instr& instr) {
    if (!loads_input(kernel, instr) || !instr.args.empty() || !is_same(kernel, instr, loop)) return false;
    const int64_t registers = registers_of(kernel.tiles[instr.result]);
    if (held + registers > kFit) return false;
    held += registers;
    return true;
  });
}

void hoist_same(Kernel& kernel, VarId loop) {
  const auto at = find_loop(kernel, loop);
  if (at == kernel.body.end()) return;
  const std::vector<int> made = times_made(kernel);
  std::set<TileId> same;
  for (auto before = kernel.body.begin(); before != at; ++before)
    if (before->result >= 0 && made[before->result] == 1) same.insert(before->result);
  hoist(kernel, at, [&](const Instr& instr) {
    const bool computes = instr.op == InstrOp::kMap || instr.op == InstrOp::kPack || instr.op == InstrOp::kConvert;
    const bool goes = (loads_input(kernel, instr) || (computes && !goes_through_memory(instr))) &&
                      made[instr.result] == 1 && is_same(kernel, instr, loop) &&
                      std::all_of(instr.args.begin(), instr.args.end(), [&](TileId arg) { return same.contains(arg); });
    if (goes) same.insert(instr.result);
    return goes;
  });
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

#include "compiler/schedule/resident/registers.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/pipeline/pipeline.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/data_movement.h"

namespace wl {
namespace {

// How instructions access a buffer. `alike`: all of them are stores and loads of whole tiles, with one layout and one
// slice.
struct Use {
  Layout layout;
  Slice slice;
  bool alike = true;
};

bool touches_memory(const Instr& instr) {
  return info(instr.op).has(Operand::slice) || info(instr.op).has(Operand::last) || goes_through_memory(instr);
}

std::map<BufferId, Use> uses_of(const Kernel& kernel) {
  std::map<BufferId, Use> out;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (info(instr.op).is_async_copy()) out[instr.into.buffer].alike = false;
    if (!touches_memory(instr) || instr.slice.buffer < 0) return;
    const bool store = instr.op == InstrOp::kStore;
    const auto [found, is_first] = out.try_emplace(instr.slice.buffer);
    Use& use = found->second;
    if ((!store && instr.op != InstrOp::kLoad) || !instr.guards.empty() || !instr.slice.offset.terms.empty()) {
      use.alike = false;
      return;
    }
    const Tile& tile = kernel.tiles[store ? instr.args[0] : instr.result];
    if (is_first && use.alike) {
      use.layout = tile.layout;
      use.slice = instr.slice;
    }
    use.alike = use.alike && tile.bound.empty() && tile.layout == use.layout && instr.slice == use.slice;
  });
  return out;
}

// Replaces stores to and loads of the given buffers by copies to and from tiles.
void replace(std::vector<Instr>& body, const Kernel& kernel, const std::map<BufferId, TileId>& tiles) {
  for (Instr& instr : body) {
    replace(instr.body, kernel, tiles);
    const auto found = touches_memory(instr) ? tiles.find(instr.slice.buffer) : tiles.end();
    if (found == tiles.end()) continue;
    const DType dtype = kernel.buffers[found->first].dtype;
    const bool store = instr.op == InstrOp::kStore;
    instr = copy_instr(store ? found->second : instr.result, store ? instr.args[0] : found->second, dtype);
  }
}

// Removes shared buffers that no instruction uses, and renumbers the others.
void drop_unused(Kernel& kernel) {
  std::set<BufferId> used;
  const auto slices = [](Instr& instr) { return std::array{&instr.slice, &instr.into}; };
  each_instr(kernel.body, [&](Instr& instr) {
    for (const Slice* slice : slices(instr)) used.insert(slice->buffer);
  });
  std::vector<KernelBuffer> buffers;
  std::vector<BufferId> now;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const bool stays = kernel.buffers[i].level != Level::kShared || used.contains(static_cast<BufferId>(i));
    now.push_back(stays ? static_cast<BufferId>(buffers.size()) : -1);
    if (stays) buffers.push_back(std::move(kernel.buffers[i]));
  }
  kernel.buffers = std::move(buffers);
  each_instr(kernel.body, [&](Instr& instr) {
    for (Slice* slice : slices(instr))
      if (slice->buffer >= 0) slice->buffer = now[static_cast<size_t>(slice->buffer)];
  });
}

// Whether an instruction only copies a tile, without a change of dtype or layout.
bool copies_tile(const Kernel& kernel, const Instr& instr) {
  return instr.op == InstrOp::kMap && instr.args.size() == 1 && instr.expr.size() == 1 &&
         instr.expr[0].kind == ExprNode::Kind::kArg &&
         kernel.tiles[instr.result].dtype == kernel.tiles[instr.args[0]].dtype &&
         kernel.tiles[instr.result].layout == kernel.tiles[instr.args[0]].layout;
}

// If all that an instruction does is cast an f32 tile to another dtype, returns that tile, otherwise -1.
TileId rounded_by(const Kernel& kernel, const Instr& instr) {
  if (instr.op != InstrOp::kMap || instr.args.size() != 1 || instr.expr.size() != 2) return -1;
  const ExprNode& root = instr.expr[1];
  const bool casts = instr.expr[0].kind == ExprNode::Kind::kArg && root.kind == ExprNode::Kind::kOp &&
                     root.op == Op::cast && root.operands[0] == 0;
  const Tile &from = kernel.tiles[instr.args[0]], &to = kernel.tiles[instr.result];
  return casts && from.dtype == DType::f32 && from.layout == to.layout && from.bound == to.bound ? instr.args[0] : -1;
}

// Makes instructions read the original of a copied tile if the original never changes, and makes packing instructions
// read values that are not rounded yet, because packing rounds them. Tiles that nothing reads any more stay in the
// kernel; the device's compiler removes them.
void read_originals(Kernel& kernel) {
  const std::vector<int> made = times_made(kernel);
  std::map<TileId, TileId> original, unrounded;
  each_instr(kernel.body, [&](Instr& instr) {
    for (TileId& arg : instr.args)
      if (const auto found = original.find(arg); found != original.end()) arg = found->second;
    if (instr.op == InstrOp::kPack)
      if (const auto found = unrounded.find(instr.args[0]); found != unrounded.end()) instr.args[0] = found->second;
    if (instr.result < 0 || made[instr.result] != 1 || instr.args.size() != 1 || made[instr.args[0]] != 1) return;
    if (copies_tile(kernel, instr)) original[instr.result] = instr.args[0];
    if (const TileId from = rounded_by(kernel, instr); from >= 0) unrounded[instr.result] = from;
  });
}

// Whether a load or store moves single elements, or vectors of neighbouring elements, of at least 4 bytes. An
// asynchronous copy cannot move less.
bool moves_vectors(const Kernel& kernel, const Instr& instr, TileId id) {
  const Tile& tile = kernel.tiles[id];
  const int64_t lanes = tile.layout.lanes();
  if (lanes == 1) return size_of(tile.dtype) >= 4;
  return instr.slice.strides[tile.layout.vector_axis()] == 1 && lanes * size_of(tile.dtype) >= 4;
}

}  // namespace

std::vector<BufferId> kept_in_registers(const Kernel& kernel, const std::vector<BufferId>& buffers) {
  const std::map<BufferId, Use> uses = uses_of(kernel);
  std::vector<BufferId> out;
  for (const BufferId buffer : buffers) {
    const auto use = uses.find(buffer);
    if (use != uses.end() && use->second.alike && kernel.buffers[buffer].level == Level::kShared) out.push_back(buffer);
  }
  return out;
}

void keep_in_registers(Kernel& kernel, const std::vector<BufferId>& buffers) {
  const std::map<BufferId, Use> uses = uses_of(kernel);
  std::map<BufferId, TileId> tiles;
  for (const BufferId buffer : kept_in_registers(kernel, buffers)) {
    tiles[buffer] = static_cast<TileId>(kernel.tiles.size());
    kernel.tiles.push_back({kernel.buffers[buffer].dtype, uses.at(buffer).layout, {}});
  }
  replace(kernel.body, kernel, tiles);
  drop_unused(kernel);
}

OperandBuffers operand_buffers(const Kernel& kernel, const std::vector<Instr>& body) {
  OperandBuffers out;
  std::map<TileId, const Instr*> loads;  // of tiles that hold elements or vectors of inputs unchanged
  for (const Instr& instr : body) {
    if (loads_input(kernel, instr) && moves_vectors(kernel, instr, instr.result)) loads[instr.result] = &instr;
    if (instr.op == InstrOp::kStore && loads.contains(instr.args[0]) && moves_vectors(kernel, instr, instr.args[0])) {
      out.copied.insert(instr.slice.buffer);
      Instr copy = *loads[instr.args[0]];
      copy.args = {instr.args[0]};
      copy.into = instr.slice;
      if (box_of(kernel, copy)) out.in_boxes.insert(instr.slice.buffer);
    }
    if (instr.op == InstrOp::kWords || instr.op == InstrOp::kWordsAcross) out.multiplied.insert(instr.slice.buffer);
  }
  return out;
}

absl::Status finish_resident(Kernel& kernel, const std::vector<BufferId>& kept, VarId turns, bool boxes,
                             const Machine& machine) {
  const bool alongside = kernel.copiers > 0;
  keep_in_registers(kernel, kept);
  read_originals(kernel);
  hoist_same(kernel, turns);
  const auto loop = find_loop(kernel, turns);
  if (loop == kernel.body.end()) return alongside ? invalid("there is no loop for copying waves") : absl::OkStatus();
  const OperandBuffers operands = operand_buffers(kernel, loop->body);
  Pipeline ahead{turns, {}, 2};
  ahead.alongside = alongside;
  int64_t growth = 0;
  for (const BufferId buffer : operands.multiplied) {
    const bool copied = (machine.target->features & kAsyncCopy) != 0 && operands.copied.contains(buffer);
    ahead.rings.push_back({buffer, copied, boxes});
    growth += kernel.bytes_of(kernel.buffers[buffer]);
  }
  if (kernel.scratch_bytes() + growth > machine.target->gpu.block_shared)
    return alongside ? invalid("shared memory has no room for what waves copy ahead") : absl::OkStatus();
  return pipeline(kernel, ahead);
}

}  // namespace wl

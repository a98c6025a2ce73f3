#include "compiler/schedule/inliner.h"

#include <algorithm>

namespace wl {

KernelInliner::KernelInliner(Kernel part, const To& to, KernelBuilder& out)
    : part_(std::move(part)), given_(to.buffers), places_(to.places), graph_(to.graph), out_(out) {
  place_buffers(to);
  place_vars(to.block);
  Kernel& whole = out.kernel();
  first_tile_ = static_cast<TileId>(whole.tiles.size());
  for (Tile tile : part_.tiles) {
    for (std::vector<Affine>& axis : tile.bound)
      for (Affine& bound : axis) bound = moved(bound);
    tile.origin = moved(tile.origin);
    whole.tiles.push_back(std::move(tile));
  }
}

void KernelInliner::place_buffers(const To& to) {
  Kernel& whole = out_.kernel();
  for (size_t b = 0; b < part_.buffers.size(); ++b) {
    const KernelBuffer& buffer = part_.buffers[b];
    if (b >= given_.size()) {
      buffers_.push_back(static_cast<BufferId>(whole.buffers.size()));
      whole.buffers.push_back(buffer);
      if (info(buffer.level).memory == Memory::kScratch) whole.buffers.back().byte_offset += to.scratch;
    } else if (given_[b].kept >= 0) {
      buffers_.push_back(to.kept[given_[b].kept]);
    } else {
      buffers_.push_back(given_[b].global);
      if (buffer.output) whole.buffers[given_[b].global].once = buffer.once;
    }
  }
}

void KernelInliner::place_vars(const Affine& block) {
  vars_.resize(part_.vars.size());
  for (size_t v = 0; v < part_.vars.size(); ++v) {
    const Var& var = part_.vars[v];
    if (var.kind == Var::Kind::kBlock) {
      vars_[v] = block;
    } else if (var.kind == Var::Kind::kTeam) {
      vars_[v] = affine(kTeamVar);
    } else if (var.kind == Var::Kind::kLoop) {
      vars_[v] = affine(out_.loop_var(var.name));
    } else {
      std::vector<Affine> of;
      for (const Affine& source : var.of) of.push_back(moved(source));
      const bool known = std::all_of(of.begin(), of.end(), [](const Affine& a) { return a.terms.empty(); });
      if (!known) {
        vars_[v] = affine(out_.derived(var.name, std::move(of), var.div, var.mod));
        continue;
      }
      int64_t value = of[0].base;
      for (const Affine& source : of) value = std::min(value, source.base);
      value /= var.div;
      vars_[v] = fixed(var.mod == 0 ? value : value % var.mod);
    }
  }
}

Affine KernelInliner::moved(const Affine& from) const {
  Affine to = fixed(from.base);
  for (const auto& [var, coefficient] : from.terms) to = sum(std::move(to), vars_[var], coefficient);
  return to;
}

Slice KernelInliner::moved(Slice slice) const {
  if (slice.buffer < 0) return slice;
  slice.offset = moved(slice.offset);
  const auto number = static_cast<size_t>(slice.buffer);
  if (number < given_.size())
    for (size_t axis = 0; axis < given_[number].shift.size(); ++axis)
      slice.offset = sum(std::move(slice.offset), places_[axis], given_[number].shift[axis]);
  slice.buffer = buffers_[number];
  return slice;
}

// The whole kernel's NodeListing contains the part's own graph, but not the graphs that the part was itself joined
// from. So a node of those graphs becomes -1.
NodeOrigin KernelInliner::moved(NodeOrigin origin) const {
  return {origin.graph == 0 ? origin.node : -1, graph_};
}

std::vector<Instr> KernelInliner::body(const std::vector<Instr>& from, bool barriers) const {
  std::vector<Instr> to;
  for (Instr instr : from) {
    if (instr.op == InstrOp::kBarrier && !barriers) continue;
    if (instr.result >= 0) instr.result += first_tile_;
    for (TileId& arg : instr.args) arg += first_tile_;
    if (instr.op == InstrOp::kIota)
      instr.slice.offset = moved(instr.slice.offset);
    else
      instr.slice = moved(std::move(instr.slice));
    instr.into = moved(std::move(instr.into));
    for (SliceGuard& guard : instr.guards) guard.at = moved(guard.at);
    for (ExprNode& node : instr.expr) node.origin = moved(node.origin);
    if (instr.slice.buffer >= 0 && info(out_.kernel().buffers[instr.slice.buffer].level).of_block) {
      if (instr.op == InstrOp::kPrefetch) continue;
      instr.streaming = false;
    }
    if (instr.op == InstrOp::kLoop) {
      instr.var = vars_[instr.var].terms[0].first;
      for (Affine& trips : instr.trips) trips = moved(trips);
      instr.body = body(instr.body, barriers);
    }
    to.push_back(std::move(instr));
  }
  return to;
}

}  // namespace wl

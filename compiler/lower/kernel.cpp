#include "compiler/lower/kernel.h"

#include <algorithm>

namespace wl {
namespace {

constexpr InstrInfo kInstrs[] = {
    {InstrOp::kLoad, "load"},         {InstrOp::kStore, "store"}, {InstrOp::kGather, "gather"},
    {InstrOp::kPrefetch, "prefetch"}, {InstrOp::kMap, "map"},     {InstrOp::kFold, "fold"},
    {InstrOp::kCross, "cross"},       {InstrOp::kFill, "fill"},   {InstrOp::kIota, "iota"},
    {InstrOp::kConvert, "convert"},   {InstrOp::kLoop, "for"},    {InstrOp::kFence, "fence"},
    {InstrOp::kBarrier, "barrier"},
};

}  // namespace

std::span<const InstrInfo> instrs() {
  return kInstrs;
}
std::string_view name_of(InstrOp op) {
  return kInstrs[static_cast<int>(op)].name;
}

Affine& Affine::add(VarId var, int64_t coefficient) {
  if (coefficient == 0) return *this;
  for (auto& [v, c] : terms)
    if (v == var) {
      c += coefficient;
      return *this;
    }
  terms.emplace_back(var, coefficient);
  return *this;
}

int64_t Kernel::scratch_bytes() const {
  int64_t end = 0;
  for (const KernelBuffer& buffer : buffers) {
    if (buffer.level != Level::kShared) continue;
    int64_t bytes = size_of(buffer.dtype);
    for (int64_t extent : buffer.shape) bytes *= extent;
    end = std::max(end, buffer.byte_offset + bytes);
  }
  return (end + 63) / 64 * 64;
}

int Kernel::vector_lanes() const {
  int most = 1;
  for (const Tile& tile : tiles) most = std::max(most, tile.layout.lanes());
  return most;
}

}  // namespace wl

#include "compiler/lower/kernel.h"

#include <algorithm>

namespace wl {
namespace {

constexpr InstrInfo kInstrs[] = {
    {InstrOp::kLoad, "load"},       {InstrOp::kStore, "store"},
    {InstrOp::kGather, "gather"},   {InstrOp::kPrefetch, "prefetch"},
    {InstrOp::kMap, "map"},         {InstrOp::kFold, "fold"},
    {InstrOp::kCross, "cross"},     {InstrOp::kFill, "fill"},
    {InstrOp::kIota, "iota"},       {InstrOp::kConvert, "convert"},
    {InstrOp::kLoop, "for"},        {InstrOp::kFence, "fence"},
    {InstrOp::kBarrier, "barrier"}, {InstrOp::kAsyncLoad, "async_load"},
    {InstrOp::kCommit, "commit"},   {InstrOp::kWait, "wait"},
};

int64_t bytes_of(const KernelBuffer& buffer) {
  return elements(buffer.shape) * size_of(buffer.dtype);
}

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
  for (const KernelBuffer& buffer : buffers)
    if (buffer.level == Level::kShared) end = std::max(end, buffer.byte_offset + bytes_of(buffer));
  return (end + 63) / 64 * 64;
}

bool Kernel::overlap(BufferId a, BufferId b) const {
  const KernelBuffer &mine = buffers[a], &theirs = buffers[b];
  return a != b && mine.level == Level::kShared && theirs.level == Level::kShared &&
         mine.byte_offset < theirs.byte_offset + bytes_of(theirs) &&
         theirs.byte_offset < mine.byte_offset + bytes_of(mine);
}

int Kernel::vector_lanes() const {
  int most = 1;
  for (const Tile& tile : tiles) most = std::max(most, tile.layout.lanes());
  return most;
}

}  // namespace wl

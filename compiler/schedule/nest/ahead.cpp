// Persistent blocks with rows on their way: what a row reads of its own goes to a ring in shared memory some turns
// before it is computed (ALCOP's pipelining, applied to rows). Every thread copies what it will load, so no barrier is
// needed.
#include "compiler/schedule/nest/loops.h"

namespace wl {

TileId LoopLowering::load_sent(const Access& access, DType dtype, Code& code) {
  Kernel& kernel = out_.kernel();
  const int64_t pitch = (vector_tile_ + 63) / 64 * 64;
  Slice slice;
  slice.buffer = out_.shared(cat("ahead", sent_.size()), dtype, {ahead_ + 1, kernel.teams, pitch});
  if (kernel.teams > 1) slice.offset.add(kTeamVar, pitch);
  slice.strides = {0, 1};
  sent_.emplace_back(access, slice);
  slice.offset = sum(std::move(slice.offset), slot_, pitch * kernel.teams);
  const TileId tile = make_tile(dtype, true);
  code.inner.push_back(load_instr(tile, std::move(slice)));
  code.loads.emplace_back(access, tile);
  return tile;
}

// Zeros beyond the last row, and in its place for teams that have none.
void LoopLowering::send_rows(const Affine& row, const Affine& slot) {
  const RowPlace place = place_of(row, {});
  const std::vector<std::vector<Affine>> now = bound_;
  if (!bound_.empty() && !vector_reduced_) bound_ = {{}, {sum(fixed(vector_extent_), place.vector_base, -1)}};
  for (const auto& [access, first] : sent_) {
    Instr instr;
    instr.op = InstrOp::kAsyncLoad;
    instr.args = {make_tile(out_.kernel().buffers[first.buffer].dtype, true)};
    instr.slice = slice_of(out_.input_buffer(access.input), access, place, true);
    instr.into = first;
    const std::vector<int64_t>& shape = out_.kernel().buffers[first.buffer].shape;
    instr.into.offset = sum(std::move(instr.into.offset), slot, shape[1] * shape[2]);
    instr.guards.push_back({row, {0, 0}, rows_});
    out_.push(std::move(instr));
  }
  bound_ = now;
  out_.push(commit_instr());
}

}  // namespace wl

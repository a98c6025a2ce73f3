#include "compiler/domain/stitch.h"

namespace wl {

int64_t Stitched::blocks() const {
  int64_t blocks = 1;
  for (int64_t count : counts) blocks *= count;
  return blocks;
}

Machine stage_machine(const Machine& machine, const Stage& stage) {
  Machine one = machine;
  one.threads = 1;
  // With parts of so many elements, no reduction is divided among blocks, and a space offers kernels of one pass only.
  one.part_elements = int64_t{1} << 50;
  one.target = stage.target.get();
  return one;
}

}  // namespace wl

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
  // A reduction is divided among blocks only if each block gets at least this many elements. No reduction is so long,
  // so a space offers kernels of one pass only.
  one.part_elements = int64_t{1} << 50;
  one.target = stage.target.get();
  return one;
}

}  // namespace wl

// Values that stay in registers: passes over a kernel that keep what threads have stored, and load again, where it is.
#pragma once

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// Replaces buffers of shared memory by tiles, where all that touches a buffer are stores and loads of whole tiles of
// one layout at one place: each thread then loads what it has stored itself. Buffers that nothing uses any more, of
// those in `buffers` or not, leave the kernel, which renumbers the others.
void keep_in_registers(Kernel& kernel, const std::vector<BufferId>& buffers);

// The shared buffers of `buffers` that it would replace.
std::vector<BufferId> kept_in_registers(const Kernel& kernel, const std::vector<BufferId>& buffers);

// All of this for a stitched kernel whose stages are held: `kept` are the buffers of the values that they hand on, and
// `turns` is the loop over turns. What is the same in every turn is computed before them. Parts of operands are brought
// to shared memory a turn ahead, where there is room.
absl::Status finish_held(Kernel& kernel, const std::vector<BufferId>& kept, VarId turns, const Machine& machine);

}  // namespace wl

// Passes over a kernel that keep values in registers, where threads would store them to shared memory and load them
// again.
#pragma once

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// Replaces buffers by tiles in registers: those of `buffers` that are in shared memory and that only stores and loads
// of whole tiles access, all with one layout and one slice; each thread then loads only what it has stored itself.
// Removes shared buffers that nothing uses any more, whether or not they are in `buffers`, and renumbers the other
// buffers.
void keep_in_registers(Kernel& kernel, const std::vector<BufferId>& buffers);

// Returns which of `buffers` keep_in_registers() would replace in this kernel.
std::vector<BufferId> kept_in_registers(const Kernel& kernel, const std::vector<BufferId>& buffers);

// Finishes a stitched kernel whose stages are resident. Keeps values in registers, moves computations that are the same
// in every turn (iteration along the reduced axis) before the loop over turns, and copies operands to shared memory one
// turn ahead if there is room for two turns. `kept`: the buffers of the values that stages hand on. `turns`: the
// variable of the loop over turns.
absl::Status finish_resident(Kernel& kernel, const std::vector<BufferId>& kept, VarId turns, const Machine& machine);

}  // namespace wl

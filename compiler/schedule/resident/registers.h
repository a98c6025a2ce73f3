// Passes over a kernel that keep values in registers, where threads would store them to shared memory and load them
// again.
#pragma once

#include <set>
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
// variable of the loop over turns. If the kernel has copier threads, these copy the operands, as boxes (tma) if
// `boxes`; InvalidArgument if they cannot.
absl::Status finish_resident(Kernel& kernel, const std::vector<BufferId>& kept, VarId turns, bool boxes,
                             const Machine& machine);

// The shared buffers that matrix instructions read in a body; those that are filled with what is loaded from inputs,
// unchanged and in vectors of at least 4 bytes, so that asynchronous copies can fill them; and those of the latter that
// copies of boxes can fill (compiler/kernel/shared_factors.h).
struct OperandBuffers {
  std::set<BufferId> multiplied, copied, in_boxes;
};
OperandBuffers operand_buffers(const Kernel& kernel, const std::vector<Instr>& body);

}  // namespace wl

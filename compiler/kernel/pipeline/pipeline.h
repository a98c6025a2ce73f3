// Lets the loads of a loop run ahead of what uses them (G. Huang et al., "ALCOP: Automatic Load-Compute Pipelining in
// Deep Learning Compiler for AI-GPUs", MLSys 2023). Lowering writes the plain loop: every iteration fills buffers in
// shared memory, then reads them. Here each buffer becomes a ring of slots, one for each iteration that is under way.
//
// A buffer is filled by its *producers*: a store of the loop, and the instructions that compute what is stored.
// Producers can run ahead if they depend on nothing that the loop changes but its variable. They become loads into
// registers early in an iteration and stores late in it, or, where a loaded value is stored as it is, one asynchronous
// copy.
//
//   for i in n {                   copy 0 .. stages-2: each `async_load, commit`, where there is such an iteration
//     %1 = load x[i*8]             for i in n {
//     store s[0], %1        =>       wait stages-2
//     %2 = load s[0]                 async_load x[(i+stages-1)*8] to s[(i+stages-1) % stages], where i+stages-1 < n
//     ...                            commit
//   }                                %2 = load s[i % stages]; ... }
//                                  wait 0
//
// Barriers are placed afterwards, as in every kernel (barriers.h). The wait stands before the copies, so that one
// barrier between both serves the elements that arrive and the slot that is written next. Threads that read only what
// they copied themselves need no barrier; they start the next copies before they wait. Where the uses end with a wait
// for products that the matrix units compute while the threads go on (mma_wait), the copies stand before that wait.
//
// Where the kernel has copiers (threads that only copy), these run the copies, in the order of the plain loop. Phases
// keep the copiers from filling a slot before the teams have used its elements, and the teams from using a slot before
// it is filled. Nothing is added before or after the loop.
//
//   for i in n {
//     copiers {
//       await used[i % stages] parity (i / stages + 1) % 2
//       async_load x[i*8] to s[i % stages]
//       arrive_copied filled[i % stages]
//     }
//     await filled[i % stages] parity i / stages % 2
//     %2 = load s[i % stages]; ...
//     arrive used[i % stages] }
//
// Reads of the buffers into registers may run ahead as well, by one group. Where reads alternate with their uses
// (groups.h), each group is read while the group before it is used, and the first group of an iteration is read at the
// end of the iteration before.
#pragma once

#include <vector>

#include "compiler/base/status.h"
#include "compiler/kernel/kernel.h"

namespace wl {

struct Pipeline {
  struct Ring {
    BufferId buffer = -1;  // a buffer in shared memory, which every iteration fills
    bool copied = false;   // whether asynchronous copies fill the buffer
    bool boxes = false;    // whether copier threads fill the buffer with boxes of a matrix (kernel/shared_factors.h)
  };
  // The variable of the loop whose iterations are to overlap. If several loops have this variable, the loop that uses
  // the buffers is pipelined.
  VarId loop = -1;
  std::vector<Ring> rings;
  int64_t stages = 1;      // how many iterations are under way at once; no more than the loop has
  int64_t registers = 1;   // how many sets of tiles the buffers are read into: 1, or 2 that alternate
  bool alongside = false;  // whether the kernel's copier threads run the copies
  // With copiers and a loop around `loop`: how many iterations of `loop` ran in the earlier iterations of the outer
  // loop. Slots and phases are counted on from there.
  Affine before = {};
};

// Pipelines the loop as `how` says. If the loop does not allow it, returns an Invalid error that says why, and leaves
// the kernel unchanged. The loop's variable and variables with lower numbers keep their numbers.
absl::Status pipeline(Kernel& kernel, const Pipeline& how);

}  // namespace wl

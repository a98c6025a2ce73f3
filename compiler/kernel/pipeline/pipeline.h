// Lets the loads of a loop run ahead of what uses them (G. Huang et al., "ALCOP: Automatic Load-Compute Pipelining in
// Deep Learning Compiler for AI-GPUs", MLSys 2023). Lowering writes the plain loop: every iteration fills buffers in
// shared memory, then reads them. Here each buffer becomes a ring of slots, one for each iteration that is under way.
//
// What fills a buffer is a store of the loop and what it is computed from: its *producers*. They run ahead where they
// depend on nothing that the loop changes but its variable. They are loads into registers early in an iteration and
// stores late in it, or, where a load's value is stored as it is, one asynchronous copy.
//
//   for i in n {                   copy 0 .. stages-2: each `async_load, commit`, where there is such an iteration
//     %1 = load x[i*8]             for i in n {
//     store s[0], %1        =>       wait stages-2
//     %2 = load s[0]                 async_load x[(i+stages-1)*8] to s[(i+stages-1) % stages], where i+stages-1 < n
//     ...                            commit
//   }                                %2 = load s[i % stages]; ... }
//                                  wait 0
//
// Barriers are placed afterwards, as in every kernel (barriers.h). The wait stands before the copies so that one
// barrier between both does for what arrives and for the slot that is written next; threads that read what they copied
// themselves need no barrier, and start the next copies before they wait. Where the uses end with a wait for products
// that are computed without the threads (mma_wait), the copies stand before it.
//
// Where the kernel's copiers run the copies, they do so in the plain order: phases keep them from filling a slot before
// its elements have been used, and the teams from using it before it is filled. Nothing comes before or after the loop.
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
// Reads of the buffers into registers may run ahead as well, by one: where uses alternate with what they read
// (groups.h), a group is read while the one before it is used, and the first of an iteration at the end of the
// iteration before.
#pragma once

#include <vector>

#include "compiler/base/status.h"
#include "compiler/kernel/kernel.h"

namespace wl {

struct Pipeline {
  struct Ring {
    BufferId buffer = -1;  // of shared memory, filled in every iteration
    bool copied = false;   // by asynchronous copies
    bool boxes = false;    // as boxes of a matrix, where copiers copy
  };
  VarId loop = -1;  // whose iterations overlap; of several loops with this variable the one that uses the buffers
  std::vector<Ring> rings;
  int64_t stages = 1;      // iterations under way at once, at most as many as there are
  int64_t registers = 1;   // sets of tiles for what is read of the buffers: 1, or 2 that take turns
  bool alongside = false;  // the kernel's copiers run the copies
  Affine before = {};      // with copiers: iterations of the loop that ran before, where it is inside another one
};

// Invalid, and the kernel as it was, where the loop is not of this kind; the message says why. Variables up to the
// loop's keep their numbers.
absl::Status pipeline(Kernel& kernel, const Pipeline& how);

}  // namespace wl

// What a launch on a GPU does, read off the finished kernel: the bytes that it moves through each memory, the
// operations that it issues, and what its threads wait for. gpu_cost.h makes a time of this.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// What the threads of one role do and wait for, one thing after the other, while one block runs.
struct GpuChain {
  double slots = 0;   // operations that a wave issues, in issue slots
  double copies = 0;  // orders of asynchronous copies that a wave issues, one for each of its threads
  double waits = 0;   // waits for values from device memory, outside loops or in their first iteration
  // Such waits in later iterations, which other things may hide; one of n copies that are under way counts as 1 / n.
  double ahead = 0;
  double near = 0;      // waits for values from shared memory
  double stored = 0;    // bytes that a block stores to device memory
  double meetings = 0;  // barriers, and waits for the products of matrix instructions
};

struct GpuWork {
  // Bytes of all blocks, in sectors: those that move between device memory and the caches; those that only the L2
  // delivers, since it still has them; and those that move between the L2s of several dies and the cache behind them.
  double device_bytes = 0, cached_bytes = 0, die_bytes = 0;
  // Of a block: operations that its waves issue, in issue slots of a wave; bytes moved to and from shared memory;
  // products of matrix instructions, in multiply-adds of f32 that take the same time.
  double slots = 0, shared_bytes = 0, products = 0;
  GpuChain teams, copiers;
  double joins = 0;        // how often a block may have to wait for the partial results of others
  double sweeps = 1;       // over the grid
  double resident = 1;     // blocks that a multiprocessor has at once
  bool streaming = false;  // whether loads go past the caches
};
GpuWork gpu_work(const Kernel& kernel, const Machine& machine);

}  // namespace wl

// The expected time of a loop nest on a GPU, read off the finished kernel: what its blocks move and compute, how long
// each of them waits, and how many of them are resident at once. It does not know how asynchronous copies and matrix
// instructions overlap, so it is not for products (pipeline.h is).
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// What a launch does.
struct GpuWork {
  // Bytes that move between device memory and the L2, in sectors; and bytes that only the L2 delivers, since it still
  // has them.
  double device_bytes = 0, cached_bytes = 0;
  // Of a block: operations that its waves issue, in issue slots of a wave; those that one wave issues one after
  // another; bytes moved to and from shared memory; how often it waits for values from device memory.
  double slots = 0, slots_of_wave = 0, shared_bytes = 0, waits = 0;
  double resident = 1;     // blocks that a multiprocessor has at once
  bool streaming = false;  // whether loads go past the caches
};
GpuWork gpu_work(const Kernel& kernel, const Machine& machine);

// Returns the time of a launch in ns. bench/gpu_model/recorded.cpp judges it by recordings of a device.
double gpu_nest_ns(const Kernel& kernel, const Machine& machine);

}  // namespace wl

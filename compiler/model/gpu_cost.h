// The expected time of a kernel of any kind on a GPU, read off the finished kernel (gpu_work.h).
//
// Three things go on side by side, and the slowest of them decides, mostly: bytes move through the memories; copies
// that were ordered ahead arrive; and multiprocessors run their blocks. What a block computes and what it waits for
// follow one another, but the blocks of a multiprocessor compete only for its matrix units and for its issue slots, and
// hide each other's waits. The time of this is that of a closed queueing network whose customers are the blocks (mean
// value analysis; Reiser and Lavenberg, 1980).
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/model/gpu_work.h"
#include "compiler/target/target.h"

namespace wl {

// The time of a launch in ns, and its parts: those of moving bytes between the caches and device memory, from the L2s,
// from the cache behind the L2s of several dies, and through shared memory; that of running all blocks; and that until
// all copies that were ordered ahead have arrived.
struct GpuTime {
  double ns = 0;
  double device = 0, l2 = 0, dies = 0, shared = 0;
  double blocks = 0, copies = 0;
  double products = 0;  // part of `blocks` in which matrix units are busy
  GpuWork work;
};

// bench/gpu_model/recorded.cpp judges it by recordings of a device.
GpuTime gpu_time(const Kernel& kernel, const Machine& machine);

// Returns the time in ns for which `blocks` blocks run that begin at once on one multiprocessor, each of which needs
// its matrix units for `products` ns and its issue slots for `issue` ns, and waits for `waits` ns for other things.
double blocks_ns(double products, double issue, double waits, int blocks);

}  // namespace wl

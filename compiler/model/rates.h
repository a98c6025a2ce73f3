// The rates of a machine, from which the model computes prices: the target's nominal rates (target.h), times the shares
// of them that kernels reach. Every target has nominal rates, so this model has prices for every target.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/target/target.h"

namespace wl {

// The rates of the whole machine, all threads or multiprocessors together.
struct Rates {
  double launch_us = 0;              // us from the end of one kernel to the first instruction of the next
  double alone_us = 0;               // us from the end of one kernel to the start of a kernel of one thread
  double slots_per_ns = 0;           // issue slots per ns; a slot does one operation on one f32 element
  double contract_flops_per_ns = 0;  // rate of large f32 products in good kernels
  // Bytes per ns from memory, from the L3, and from the L2. On GPUs the last two are equal: the rate of the cache that
  // all multiprocessors share, which is the L2 or, with several dies, the cache behind the dies' L2s.
  double memory_bytes_per_ns = 0, far_bytes_per_ns = 0, near_bytes_per_ns = 0;
  // On GPUs: bytes per ns from the L2s of all dies together.
  double die_bytes_per_ns = 0;
  double far_bytes = 0, near_bytes = 0;  // values of at most this many bytes stay in the L3, or in the L2, until read
  // Rows up to this size stay in the fast memory of a thread or block from one walk over the row to the next.
  double row_bytes = 0;
  double workers = 1;  // number of elements that must be computed at once to keep the machine busy
  // Returns the rate at which a value of `bytes` bytes is read; its size decides in which cache, or in memory, the
  // previous kernel has left it.
  double home_of(double bytes) const {
    return bytes <= near_bytes ? near_bytes_per_ns : bytes <= far_bytes ? far_bytes_per_ns : memory_bytes_per_ns;
  }
  double small_bytes = 0;  // groups that move fewer bytes than this run on one thread; 0: no groups do
};
Rates rates_of(const Machine& machine);

// The ceilings of a roofline plot: the peak rate of f32 in Gflop/s, and for each memory its name and GB/s, farthest
// memory first.
struct Ceilings {
  double gflops = 0;
  std::vector<std::pair<std::string, double>> memories;
};
Ceilings ceilings_of(const Machine& machine);

}  // namespace wl

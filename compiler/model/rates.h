// What a target can do, as the price of a group needs it: a row of facts for each target beside the limits and nominal
// rates of target.h. To add a target: a row of kRates; one that has none takes the first of its family's.
#pragma once

#include <cstdint>

#include "compiler/target/target.h"

namespace wl {

// Of the whole machine, all threads or multiprocessors together.
struct Rates {
  double launch_us = 0;              // from the end of one kernel to the first instruction of the next
  double alone_us = 0;               // the same for a kernel of one thread
  double slots_per_ns = 0;           // f32 elements times issue slots
  double contract_flops_per_ns = 0;  // of a large f32 product, as good kernels reach it
  double half_factor = 1;            // that much faster are products of 16-bit floats
  double memory_bytes_per_ns = 0, far_bytes_per_ns = 0, near_bytes_per_ns = 0;  // of memory, L3 (a GPU's L2), L2
  double far_bytes = 0, near_bytes = 0;  // values up to this size are found there again
  double row_bytes = 0;                  // of rows that a thread or block keeps between walks
  double workers = 1;                    // elements (lanes included) that must be under way to use all of it
  // At which rate a value of so many bytes comes from where the kernel before left it.
  double home_of(double bytes) const {
    return bytes <= near_bytes ? near_bytes_per_ns : bytes <= far_bytes ? far_bytes_per_ns : memory_bytes_per_ns;
  }
  double small_bytes = 0;  // groups that move less run on one thread (0: never)
};
Rates rates_of(const Machine& machine);

}  // namespace wl

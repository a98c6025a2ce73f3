// How many cycles an access of shared memory takes by its banks, counted exactly. For whoever prices or judges kernels:
// a cost of a load or store is its cycles; the ratio of cycles to the least is its bank conflicts.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

struct BankUse {
  int64_t cycles = 0;  // in which a bank or more give or take a word of 4 bytes
  int64_t least = 0;   // as many as there would be if no two words of a cycle had one bank
  bool conflicts() const { return cycles > least; }
};

// What all waves of a team take for a load (or, with `stores`, a store, in which the first of several threads with the
// same element takes part) of a whole tile: element i of axis a of its layout is at `offset` + sum of strides[a] * i,
// in elements of `bytes` bytes, before the swizzle. Pieces of vectors are as long as the printer makes them:
// contiguous, aligned, of 16 bytes at most. A wave has the threads of gpu.wave, and gpu.banks banks are reached in a
// cycle by as many neighbouring lanes as need no more bytes than these have; words that several of these lanes reach
// count once. `offset` is what the slice's offset is for one choice of its variables. AMD's loads of 16 bytes take the
// lanes of a cycle from other places of the wave, which this does not know. Takes time in proportion to the elements.
BankUse bank_use(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, const Swizzle& swizzle,
                 int bytes, const Gpu& gpu, int team, bool stores);

}  // namespace wl

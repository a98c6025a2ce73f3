// Counts exactly how many cycles a load or store of shared memory takes because of the banks. The cycles are the cost
// of the load or store; their ratio to the least possible number says how bad its bank conflicts are.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

struct BankUse {
  int64_t cycles = 0;  // cycles in which at least one bank gives or takes a word of 4 bytes
  int64_t least = 0;   // the cycles if no two words of a cycle had the same bank
  bool conflicts() const { return cycles > least; }
};

// The cycles that all waves of a team (the threads that work on a tile together) take for a load of a whole tile, or,
// with `stores`, for a store, in which only the first of several threads with the same element takes part. Element i of
// axis a of the tile's layout is at `offset` + sum of strides[a] * i, in elements of `bytes` bytes, before the swizzle;
// `offset` is the slice's offset for one choice of its variables. Pieces of vectors are as long as the printer makes
// them: contiguous, aligned, of 16 bytes at most. A wave has gpu.wave threads. In one cycle, gpu.banks banks serve as
// many neighbouring lanes as need no more bytes than these banks have; words that several of the lanes reach count
// once. AMD's loads of 16 bytes take the lanes of a cycle from other places of the wave, which this function does not
// model. Its run time is proportional to the number of elements.
BankUse bank_use(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, const Swizzle& swizzle,
                 int bytes, const Gpu& gpu, int team, bool stores);

}  // namespace wl

// Counts exactly how many cycles a load or store of shared memory takes because of its banks. These cycles are the cost
// of the load or store; their ratio to the least possible number says how bad its bank conflicts are.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

struct BankUse {
  int64_t cycles = 0;  // cycles in which at least one bank transfers a word of 4 bytes
  int64_t least = 0;   // the cycles that the same accesses take without bank conflicts
  bool conflicts() const { return cycles > least; }
};

// Returns the cycles that all waves of a team (the threads that work on a tile together) take to load a whole tile or,
// with `stores`, to store it. If several threads hold the same element, only the first one stores it. Element i of axis
// a of the tile's layout is at `offset` + sum of strides[a] * i, in elements of `bytes` bytes, before the swizzle;
// `offset` is the slice's offset for one set of values of its variables. One access moves as much of a vector as the
// printer's code does: contiguous, aligned elements, 16 bytes at most. A wave has gpu.wave threads. In one cycle,
// gpu.banks banks serve neighbouring lanes whose accesses together have at most 4 * gpu.banks bytes; a word that
// several of these lanes access counts once. AMD's loads of 16 bytes serve lanes in a cycle that are not neighbours,
// which this function does not model. The function takes time proportional to the tile's number of elements.
BankUse bank_use(const Layout& layout, const std::vector<int64_t>& strides, int64_t offset, const Swizzle& swizzle,
                 int bytes, const Gpu& gpu, int team, bool stores);

}  // namespace wl

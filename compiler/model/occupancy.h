// How many blocks of a kernel a multiprocessor of a GPU has at once, read off the finished kernel.
#pragma once

#include <set>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

// Elements of a lane's part of a tile.
double elements_of_lane(const Tile& tile);

// Tiles of words that matrix instructions read from shared memory themselves, so that they need no registers.
std::set<TileId> words_in_memory(const Kernel& kernel);

// Registers of a thread, of 4 bytes, for all tiles whose values are needed at one time.
double tile_registers(const Kernel& kernel);

// The number of blocks, at least 1: registers, shared memory, threads and the GPU's own limit bound it. Compilers may
// give a thread more or fewer registers than tile_registers() and what addresses need on average.
double resident_blocks(const Kernel& kernel, const Gpu& gpu);

}  // namespace wl

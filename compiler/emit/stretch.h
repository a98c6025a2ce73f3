// Stretches: runs of consecutive instructions over one tile space (the elements of a tile) that print as one loop. The
// functions here decide from the kernel alone which instructions belong together and which stretches have no loop; the
// printer prints what is decided here.
#pragma once

#include <set>
#include <vector>

#include "compiler/kernel/tile_registers.h"

namespace wl {

struct Stretch {
  std::vector<const Instr*> instrs;
  TileId space = -1;      // the tile whose layout and bound the loop runs over
  bool unrolled = false;  // printed without a loop, since some instructions run over fewer elements than others
};

// Whether an instruction fills, moves or multiplies tiles in the tile registers of a CPU; `tiles` is
// tiles_in_registers(kernel).
bool uses_tile_registers(const Instr& instr, const ResidentTiles& tiles);
// Returns the longest stretch of `body` that begins at instruction `begin`. A stretch ends before a loop, and is empty
// if `begin` is a loop. An instruction that uses tile registers is a stretch by itself.
Stretch next_stretch(const Kernel& kernel, std::span<const Instr> body, size_t begin,
                     const ResidentTiles& in_tile_registers);

// The tiles that have more than one register repeat and are used in several stretches. They stay in registers, so every
// stretch that uses them prints without a loop.
std::set<TileId> register_tiles(const Kernel& kernel);

int64_t repeats_of(const Tile& tile);  // register repeats over all axes
bool same_space(const Tile& a, const Tile& b);

}  // namespace wl

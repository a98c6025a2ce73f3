// Stretches: runs of instructions over one tile space that print as one loop. Which instructions belong together, and
// whether the loop is unrolled away, is decided here from the kernel alone; the printer prints what is decided.
#pragma once

#include <set>
#include <vector>

#include "compiler/kernel/tile_registers.h"

namespace wl {

struct Stretch {
  std::vector<const Instr*> instrs;
  TileId space = -1;      // the tile whose layout and bound the loop runs over
  bool unrolled = false;  // straight-line code: a tile with several repeats outlives the stretch
};

// Whether an instruction moves or multiplies tiles in tile registers; `tiles`: tiles_in_registers(kernel).
bool uses_tile_registers(const Instr& instr, const HeldTiles& tiles);
// Cuts a body (one level, loops excluded) from `begin` on into the longest stretch that may start there. What uses tile
// registers stands alone.
Stretch next_stretch(const Kernel& kernel, std::span<const Instr> body, size_t begin,
                     const HeldTiles& in_tile_registers);

// Tiles with more than one register repeat that are used in several stretches: they are kept in registers, so every
// stretch that touches them is unrolled.
std::set<TileId> register_tiles(const Kernel& kernel);

int64_t repeats_of(const Tile& tile);  // register repeats over all axes
bool same_space(const Tile& a, const Tile& b);

}  // namespace wl

// Stretches: consecutive instructions over one tile space (the elements of a tile), which are printed as one loop. The
// functions here decide from the kernel alone which instructions belong together and which stretches have no loop; the
// printer follows these decisions.
#pragma once

#include <set>
#include <vector>

#include "compiler/kernel/tile_registers.h"

namespace wl {

struct Stretch {
  std::vector<const Instr*> instrs;
  TileId space = -1;      // the tile whose layout and bound the loop iterates over
  bool unrolled = false;  // whether it is printed without a loop, since some instructions cover fewer elements
};

// Whether an instruction fills, moves or multiplies tiles in a CPU's tile registers. `tiles` is
// tiles_in_registers(kernel).
bool uses_tile_registers(const Instr& instr, const ResidentTiles& tiles);
// Returns the longest stretch of `body` that begins at instruction `begin`. A stretch ends before a loop, and is empty
// if `begin` is a loop. An instruction that uses tile registers is a stretch by itself.
Stretch next_stretch(const Kernel& kernel, std::span<const Instr> body, size_t begin,
                     const ResidentTiles& in_tile_registers);

// Returns the tiles that have several register repeats and are used in several stretches. They stay in registers, so
// every stretch that uses one of them is printed without a loop.
std::set<TileId> register_tiles(const Kernel& kernel);

int64_t repeats_of(const Tile& tile);  // number of register repeats of a tile over all axes
bool same_space(const Tile& a, const Tile& b);

}  // namespace wl

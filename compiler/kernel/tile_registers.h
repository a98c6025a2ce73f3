// Tile registers of CPUs (Intel's AMX), which `mma` multiplies on machines without lanes. A fragment of a tile is one
// register: its rows are vectors, as many as the fragment has registers in its layout. The sums of a product have the
// registers from 0 on, fragment after fragment by rows, then come those of the left factor and those of the right one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

inline constexpr int kTileRegisterCount = 8;

struct TileRegister {
  int64_t rows = 0, bytes = 0;      // of a row
  std::vector<int64_t> first = {};  // coordinates of its first element in the tile
  bool operator==(const TileRegister&) const = default;
};

// The number of the first register of a tile, and whose factor or sums it is.
struct HeldTile {
  int first = 0;
  MatrixOp matrix = {};
};
using HeldTiles = std::map<TileId, HeldTile>;

// The tiles of a kernel without lanes that are in registers.
HeldTiles tiles_in_registers(const Kernel& kernel);
// The registers of a tile that is a factor or the sums of `matrix`, by rows of fragments.
std::vector<TileRegister> registers_of(MatrixOp matrix, const Layout& layout);
// The shapes of all registers, where every product of a part of the body has the same; nullopt: it has none, or
// several.
std::optional<std::vector<TileRegister>> shapes_of(const Kernel& kernel, std::span<const Instr> part);
// Tiles in registers are filled with zero, loaded and stored by whole rows without guards, and multiplied; a tile has
// the same registers in every product, and no product needs more than there are.
absl::Status check_tile_registers(const Kernel& kernel);

}  // namespace wl

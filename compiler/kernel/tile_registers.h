// Tile registers of CPUs (Intel's AMX), which `mma` multiplies on machines without lanes. A fragment of a tile is one
// tile register; its rows are the vector registers of the fragment's layout. Tile registers are numbered from 0 on:
// first those of a product's sums, fragment after fragment by rows, then those of the left factor, then those of the
// right one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

inline constexpr int kTileRegisterCount = 8;

struct TileRegister {
  int64_t rows = 0, bytes = 0;      // its rows, and the bytes of one row
  std::vector<int64_t> first = {};  // coordinates of its first element in the tile
  bool operator==(const TileRegister&) const = default;
};

// A tile in tile registers: the number of its first register, and the instruction whose factor or sums it is.
struct ResidentTile {
  int first = 0;
  MatrixOp matrix = {};
};
using ResidentTiles = std::map<TileId, ResidentTile>;

// The tiles that are in tile registers: all operands of products, on machines without lanes.
ResidentTiles tiles_in_registers(const Kernel& kernel);
// The tile registers of a tile that is a factor or the sums of `matrix`, in the order of their fragments by rows.
std::vector<TileRegister> registers_of(MatrixOp matrix, const Layout& layout);
// The shapes of all tile registers, by number, that a part of the body needs. nullopt where it has no product, or
// products that need different shapes, and on machines with lanes.
std::optional<std::vector<TileRegister>> shapes_of(const Kernel& kernel, std::span<const Instr> part);
// An internal error where a tile in tile registers is filled with anything but zero, is moved otherwise than by whole
// rows without guards, or is used by anything but moves and products; where its registers differ between products; or
// where a product needs more than kTileRegisterCount.
absl::Status check_tile_registers(const Kernel& kernel);

}  // namespace wl

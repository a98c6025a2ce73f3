// Tile registers of CPUs (Intel's AMX), on which `mma` works on machines without lanes. Each fragment of a tile is one
// tile register, whose rows are the vector registers of the fragment's layout. Tile registers are numbered from 0 on:
// first those of a product's sums, fragment after fragment by rows, then those of the left factor, then those of the
// right factor.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

inline constexpr int kTileRegisterCount = 8;

struct TileRegister {
  int64_t rows = 0, bytes = 0;      // number of rows in use, and of bytes in use of each row
  std::vector<int64_t> first = {};  // coordinates of the register's first element in the tile
  bool operator==(const TileRegister&) const = default;
};

// A tile in tile registers: the number of its first register, and the matrix instruction whose factor or sums the tile
// is.
struct ResidentTile {
  int first = 0;
  MatrixOp matrix = {};
};
using ResidentTiles = std::map<TileId, ResidentTile>;

// The tiles that are in tile registers: all operands of products, on machines without lanes.
ResidentTiles tiles_in_registers(const Kernel& kernel);
// The tile registers of a tile that is a factor or the sums of `matrix`, in the order of their fragments by rows.
std::vector<TileRegister> registers_of(MatrixOp matrix, const Layout& layout);
// The shapes of all tile registers that a part of the body needs, by register number; nullopt on machines with lanes,
// if the part has no product, or if its products need different shapes.
std::optional<std::vector<TileRegister>> shapes_of(const Kernel& kernel, std::span<const Instr> part);
// Returns an internal error if a tile in tile registers is filled with anything but zero, is loaded or stored other
// than by whole rows without guards, or is used by anything but moves and products; if a tile's registers differ
// between products; or if a product needs more than kTileRegisterCount registers.
absl::Status check_tile_registers(const Kernel& kernel);

}  // namespace wl

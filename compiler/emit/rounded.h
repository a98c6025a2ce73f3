// Finds tiles of dtype bf16 whose values bf16 can represent exactly. Registers hold bf16 values as f32, and most
// results keep the precision of f32 until they are stored (docs/numerics.md).
#pragma once

#include <set>

#include "compiler/kernel/kernel.h"

namespace wl {

// Returns the bf16 tiles that are defined only by casts and by loads without guards. A store of such a tile takes the
// upper half of the bits of each value and need not round.
std::set<TileId> rounded_tiles(const Kernel& kernel);

}  // namespace wl

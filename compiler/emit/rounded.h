// Which tiles of dtype bf16 have values that bf16 represents exactly. Registers hold bf16 values as f32, and most
// results keep the precision of f32 until they are stored (docs/numerics.md).
#pragma once

#include <set>

#include "compiler/kernel/kernel.h"

namespace wl {

// Returns the bf16 tiles that only loads without guards and casts define. A store of such a tile takes the upper half
// of the bits of each value, without rounding.
std::set<TileId> rounded_tiles(const Kernel& kernel);

}  // namespace wl

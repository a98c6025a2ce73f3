// Which tiles of bf16 hold numbers of that dtype exactly. Registers hold them as f32, and most results keep its
// precision until they are stored (docs/numerics.md).
#pragma once

#include <set>

#include "compiler/kernel/kernel.h"

namespace wl {

// Returns the tiles of bf16 that nothing but loads and casts defines: to store one takes half of its bits, and no
// rounding.
std::set<TileId> rounded_tiles(const Kernel& kernel);

}  // namespace wl

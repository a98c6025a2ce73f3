// Logarithms to base 2 of counts that are mostly powers of two, such as numbers of lanes and waves.
#pragma once

#include <bit>
#include <cstdint>

namespace wl {

// Returns the logarithm of `n` to base 2, rounded down; -1 for 0.
inline int log2_floor(int64_t n) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(n))) - 1;
}

}  // namespace wl

// Random fused groups as GPU kernels meet them: rows, columns and blocks of extents around the widths of vectors, lanes
// and waves, reduced over some axes up to three times and brought back, with operands that are repeated, transposed,
// cut, padded, joined or picked by an index. No contractions. The same seed gives the same graph.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace wl::testing {

// At most `largest` elements in any value, but for what is cut.
Graph random_group(uint64_t seed, int64_t largest = 12000);

}  // namespace wl::testing

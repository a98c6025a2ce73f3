// Random fused groups of the kinds that become GPU kernels: rows, columns and blocks with extents around the widths of
// vectors, lanes and waves, reduced over some axes up to three times and broadcast back, with operands that are
// broadcast, transposed, sliced, padded, concatenated or gathered. No contractions. The same seed gives the same graph.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace wl::testing {

// Every value has at most `largest` elements, except those that are sliced.
Graph random_group(uint64_t seed, int64_t largest = 12000);

}  // namespace wl::testing

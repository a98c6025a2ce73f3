// Random networks as users write them: convolutions with batch normalisation and pools, transformers' blocks,
// perceptrons and recurrent cells, with odd extents, reductions, concatenations and branches that meet again. Few are
// larger than a real model's part; extents may be those of real data. For tests of planning, which never computes a
// value.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace wl::testing {

// A verified graph; the same seed gives the same.
Graph random_network(uint64_t seed);

}  // namespace wl::testing

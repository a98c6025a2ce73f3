// Random networks as users write them: convolutions with batch normalisation and pools, transformer blocks, perceptrons
// and gates of recurrent cells, with odd extents, reductions, concatenations and branches that join again. They have
// few layers, but extents may be those of real data. For tests of planning, which never computes a value.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace wl::testing {

// Returns a verified graph. The same seed gives the same graph.
Graph random_network(uint64_t seed);

}  // namespace wl::testing

// Chooses the output elements that a check compares (docs/numerics.md, "What a check looks at").
#pragma once

#include "compiler/ir/eval.h"

namespace wl {

// Returns one query per output of the graph, in order. A query asks for about `samples` elements of its output, in at
// most `rows` rows (coordinates along all axes but the last). The choice depends only on the shapes and the seed; no
// value is computed.
std::vector<Query> sample_queries(const Graph& graph, uint64_t seed, int samples = 256, int rows = 12);

}  // namespace wl

// The choice of output elements that a check compares (docs/numerics.md, "What a check looks at").
#pragma once

#include "compiler/ir/eval.h"

namespace wl {

// Returns one query per output of the graph, in order: about `samples` of its elements in at most `rows` rows. Depends
// on the shapes and the seed only; no value is computed.
std::vector<Query> sample_queries(const Graph& graph, uint64_t seed, int samples = 256, int rows = 12);

}  // namespace wl

// Which elements of a result a check looks at (docs/numerics.md, "What a check looks at").
#pragma once

#include "compiler/ir/eval.h"

namespace wl {

// One query per output of the graph, in order: about `samples` of its elements in at most `rows` rows. Depends on
// nothing but the shapes and the seed; no value is computed.
std::vector<Query> sample_queries(const Graph& graph, uint64_t seed, int samples = 256, int rows = 12);

}  // namespace wl

// The oracle: a Graph's meaning in double precision, computed only where asked (demand runs backwards through the index
// maps, values forwards), with a running first-order bound of what any correctly rounded evaluation in the nodes'
// dtypes may differ by (docs/numerics.md). Inputs come from the counter-based generator of base/fill.h, or from memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Value {
  double value = 0;
  double bound = 0;
};

// Element `index` (row-major) of input node `input`, exact in the node's dtype.
using InputReader = std::function<double(NodeId input, int64_t index)>;
InputReader generated_inputs(const Graph& graph, uint64_t seed);  // stream = position among graph.inputs()

struct Query {
  NodeId node;
  std::vector<int64_t> indices;  // row-major elements
};

// One vector of values per query, in the order of its indices. Time is proportional to the elements demanded.
absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries);

// A Check of about `samples` elements per output: corners, edges of likely tiles (multiples of 16 of each axis and
// their neighbours) and random ones, at most `rows` distinct values of the leading coordinates so that row reductions
// are shared. Buffer numbers follow problem_of(): inputs in node order, then outputs.
absl::StatusOr<Check> make_check(const Graph& graph, uint64_t seed, int samples = 256, int rows = 12);

// The call interface of every kernel of a group: inputs in node order, then outputs.
std::vector<BufferSpec> buffers_of(const Graph& graph);

}  // namespace wl

// The oracle: evaluates a Graph in double precision at the requested elements only. Demand is propagated backwards
// through the index maps, then values forwards. Each value has a running first-order bound on the difference to any
// correctly rounded evaluation in the nodes' dtypes (docs/numerics.md). Inputs come from the counter-based generator of
// base/fill.h, or from memory.
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
  int64_t whole = 0;  // the bits of an integer, whose value is the nearest double
};

// Returns element `index` (row-major) of input node `input`, exact in the node's dtype.
using InputReader = std::function<double(NodeId input, int64_t index)>;
// The generator stream of an input is its position in graph.inputs().
InputReader generated_inputs(const Graph& graph, uint64_t seed);

struct Query {
  NodeId node;
  std::vector<int64_t> indices;  // row-major numbers of the requested elements
};

// Returns one vector of values per query, in the order of its indices. Time is proportional to the number of elements
// demanded.
absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries);

// Makes a Check of about `samples` elements per output: corners, edges of likely tiles (multiples of 16 of each axis
// and their neighbours) and random ones. They have at most `rows` distinct leading coordinates, so that row reductions
// are shared. Buffer numbers follow problem_of(): inputs in node order, then outputs.
absl::StatusOr<Check> make_check(const Graph& graph, uint64_t seed, int samples = 256, int rows = 12);

// Returns the arguments of every kernel of a group: inputs in node order, then outputs.
std::vector<BufferSpec> buffers_of(const Graph& graph);

}  // namespace wl

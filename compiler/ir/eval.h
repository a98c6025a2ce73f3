// The oracle evaluates a Graph in double precision, but only the requested elements. A walk from the outputs to the
// inputs finds which elements of each node are needed; a walk in the opposite direction computes their values. Each
// value has a running first-order bound on its difference from any correctly rounded evaluation in the nodes' dtypes
// (docs/numerics.md). Inputs come from the counter-based generator of base/fill.h, or from memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/base/work.h"
#include "compiler/ir/graph.h"

namespace wl {

struct Value {
  double value = 0;
  double bound = 0;
  int64_t whole = 0;  // the bits of an integer, to which `value` is the nearest double; 0 for floats
};

// Returns element `index` (row-major) of input node `input`, which must be exact in the node's dtype.
using InputReader = std::function<double(NodeId input, int64_t index)>;
// Returns a reader of the inputs that are generated from `seed`. The random stream of an input is its position in
// graph.inputs().
InputReader generated_inputs(const Graph& graph, uint64_t seed);

struct Query {
  NodeId node;
  std::vector<int64_t> indices;  // row-major indices of the requested elements
};

// Returns one vector of values per query, in the order of the query's indices. Time is proportional to the number of
// elements that are needed, and to the number of products in contractions. Returns InvalidArgument for a query outside
// the graph or a node that is too large, OutOfRange for an index of a take_along that lies outside its axis, and
// ResourceExhausted if too many elements are needed.
absl::StatusOr<std::vector<std::vector<Value>>> evaluate(const Graph& graph, const InputReader& inputs,
                                                         const std::vector<Query>& queries);

// Makes a Check of about `samples` elements per output: corners, edges of likely tiles (multiples of 16 along each
// axis, and their neighbours) and random ones. They lie in at most `rows` rows (coordinates along all axes but the
// last), so that few rows of a reduction are computed. Buffers are numbered as in buffers_of(). Fails as evaluate()
// does, and with the error of `work` once it has ended.
absl::StatusOr<Check> make_check(const Graph& graph, uint64_t seed, Work* work = nullptr, int samples = 256,
                                 int rows = 12);

// Returns the arguments of a kernel that computes `graph`: its inputs in node order, then its outputs.
std::vector<BufferSpec> buffers_of(const Graph& graph);

}  // namespace wl

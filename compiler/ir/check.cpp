#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/base/splitmix.h"
#include "compiler/ir/evaluator.h"
#include "compiler/ir/sample.h"

namespace wl {
namespace {

// Draws random coordinates that depend on the seed alone, by splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
class Chooser {
 public:
  explicit Chooser(uint64_t seed) : state_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(split_mix(state_) % static_cast<uint64_t>(n)); }
  // Returns a coordinate in [0, extent): with a probability of one half an edge of a likely tile, otherwise any
  // coordinate.
  int64_t coordinate(int64_t extent) {
    if (split_mix(state_) & 1) return below(extent);
    switch (below(4)) {
      case 0:
        return 0;
      case 1:
        return extent - 1;
      default:
        return std::clamp<int64_t>(16 * below(extent / 16 + 1) + below(3) - 1, 0, extent - 1);
    }
  }

 private:
  uint64_t state_;
};

// Returns up to `wanted` distinct positions in [0, count), in ascending order, including the first and the last. If
// `count` is at most `wanted`, returns all positions. `choose` draws one position.
template <typename Choose>
std::vector<int64_t> places(int64_t count, int64_t wanted, Choose choose) {
  std::set<int64_t> chosen;
  if (count <= wanted) {
    for (int64_t i = 0; i < count; ++i) chosen.insert(i);
  } else {
    chosen = {0, count - 1};
    // On small axes choose() draws the same few positions again and again, so the number of draws is limited.
    for (int64_t tries = 0; tries < 8 * wanted && static_cast<int64_t>(chosen.size()) < wanted; ++tries)
      chosen.insert(choose());
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<int64_t> sample_elements(const Shape& shape, uint64_t seed, int samples, int rows) {
  if (elements(shape) == 0) return {};
  if (shape.empty()) return {0};
  Chooser chooser(seed);
  const Shape leading(shape.begin(), shape.end() - 1);
  const int64_t columns = shape.back();
  std::vector<int64_t> result;
  const std::vector<int64_t> row_list = places(elements(leading), rows, [&] {
    int64_t row = 0;
    for (int64_t extent : leading) row = row * extent + chooser.coordinate(extent);
    return row;
  });
  const int64_t each = std::max<int64_t>(2, samples / static_cast<int64_t>(row_list.size()));
  for (int64_t row : row_list) {
    for (int64_t column : places(columns, each, [&] { return chooser.coordinate(columns); }))
      result.push_back(row * columns + column);
  }
  return result;
}

}  // namespace

std::vector<Query> sample_queries(const Graph& graph, uint64_t seed, int samples, int rows) {
  std::vector<Query> queries;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    NodeId id = graph.outputs[i].node;
    queries.push_back({id, sample_elements(graph.nodes[id].shape, seed + 0x9e37 * i, samples, rows)});
  }
  return queries;
}

absl::StatusOr<Check> make_check(const Graph& graph, uint64_t seed, Work* work, int samples, int rows) {
  const std::vector<Query> queries = sample_queries(graph, seed, samples, rows);
  // Generated indices may lie outside their axes. Kernels then read the nearest element, so the oracle does the same.
  WL_ASSIGN_OR_RETURN(auto values, evaluate(graph, generated_inputs(graph, seed), queries, BeforeJumps::kExact,
                                            Outside::kNearest, work));
  Check check{.seed = seed, .samples = {}};
  const int first_output = static_cast<int>(graph.inputs().size());
  for (size_t i = 0; i < queries.size(); ++i) {
    for (size_t k = 0; k < queries[i].indices.size(); ++k) {
      const Value& v = values[i][k];
      if (!std::isfinite(v.bound)) continue;  // an infinite bound accepts any result, so the element is skipped
      check.samples.push_back({first_output + static_cast<int>(i), queries[i].indices[k], v.value, v.bound});
    }
  }
  return check;
}

std::vector<BufferSpec> buffers_of(const Graph& graph) {
  std::vector<BufferSpec> buffers;
  for (NodeId id : graph.inputs()) {
    const Node& node = graph.nodes[id];
    const auto stream = static_cast<uint64_t>(buffers.size());
    buffers.push_back({.name = node.text,
                       .dtype = node.dtype,
                       .shape = node.shape,
                       .output = false,
                       .fill = node.fill,
                       .stream = stream});
  }
  for (const Output& output : graph.outputs) {
    const Node& node = graph.nodes[output.node];
    buffers.push_back(
        {.name = output.name, .dtype = node.dtype, .shape = node.shape, .output = true, .fill = {}, .stream = 0});
  }
  return buffers;
}

}  // namespace wl

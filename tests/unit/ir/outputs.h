// The values of a graph's outputs by the oracle, and the comparison with them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/ir/eval.h"

namespace wl::testing {

using OutputValues = std::vector<std::vector<Value>>;  // every element of every output

inline absl::StatusOr<OutputValues> evaluate_outputs(const Graph& graph, const InputReader& inputs) {
  std::vector<Query> queries;
  for (const Output& output : graph.outputs) {
    Query& query = queries.emplace_back(Query{output.node, {}});
    for (int64_t i = 0; i < elements(graph.nodes[output.node].shape); ++i) query.indices.push_back(i);
  }
  return evaluate(graph, inputs, queries);
}

// The same; if the oracle fails, the test fails and the outputs have no elements.
inline OutputValues values_of_outputs(const Graph& graph, const InputReader& inputs) {
  auto values = evaluate_outputs(graph, inputs);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *std::move(values) : OutputValues(graph.outputs.size());
}
inline OutputValues values_of_outputs(const Graph& graph, uint64_t seed) {
  return values_of_outputs(graph, generated_inputs(graph, seed));
}

// Returns whether a value is within a bound of the expected one. Every value is within an infinite bound.
inline bool agrees(double got, double expected, double bound) {
  if (std::isinf(bound) || got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  return std::fabs(got - expected) <= bound;
}

// Returns "" when `got` is what the oracle expects.
inline std::string difference(double got, const Value& want) {
  if (agrees(got, want.value, want.bound)) return "";
  return cat("got ", got, ", expected ", want.value, " +- ", want.bound);
}

}  // namespace wl::testing

// The values that the oracle computes for a graph's outputs, and comparisons with these values.
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

// Like evaluate_outputs(), but if the oracle fails, the test fails and the outputs are empty.
inline OutputValues values_of_outputs(const Graph& graph, const InputReader& inputs) {
  auto values = evaluate_outputs(graph, inputs);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *std::move(values) : OutputValues(graph.outputs.size());
}
inline OutputValues values_of_outputs(const Graph& graph, uint64_t seed) {
  return values_of_outputs(graph, generated_inputs(graph, seed));
}

// Returns whether a value differs from the expected one by at most the bound. With an infinite bound, every value
// agrees.
inline bool agrees(double got, double expected, double bound) {
  if (std::isinf(bound) || got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  return std::fabs(got - expected) <= bound;
}

// Returns "" if `got` is within the bound of the oracle's value, otherwise a text with both values and the bound.
inline std::string difference(double got, const Value& want) {
  if (agrees(got, want.value, want.bound)) return "";
  return cat("got ", got, ", expected ", want.value, " +- ", want.bound);
}

}  // namespace wl::testing

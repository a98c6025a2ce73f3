// Compares a kernel, as the interpreter runs it, with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"

namespace wl::testing {

inline Graph parsed(const std::string& text) {
  const auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  return *graph;
}

// Compares the interpreter's outputs with the oracle's; returns "" when all are within the bound.
inline std::string compare(const Graph& group, const Kernel& kernel) {
  const uint64_t seed = 7;
  const InputReader inputs = generated_inputs(group, seed);
  std::vector<std::vector<double>> buffers;
  for (NodeId input : group.inputs()) {
    buffers.emplace_back();
    for (int64_t i = 0; i < elements(group.nodes[input].shape); ++i) buffers.back().push_back(inputs(input, i));
  }
  std::vector<Query> queries;
  for (const Output& output : group.outputs) {
    const int64_t n = elements(group.nodes[output.node].shape);
    queries.push_back({output.node, {}});
    for (int64_t i = 0; i < n; ++i) queries.back().indices.push_back(i);
    buffers.emplace_back(n, -12345.0);
  }
  const auto expected = evaluate(group, inputs, queries);
  if (!expected.ok()) return std::string(expected.status().message());
  const absl::Status ran = interpret(kernel, buffers);
  if (!ran.ok()) return std::string(ran.message());
  for (size_t o = 0; o < group.outputs.size(); ++o) {
    const std::vector<double>& got = buffers[group.inputs().size() + o];
    for (size_t i = 0; i < got.size(); ++i) {
      const Value& want = (*expected)[o][i];
      const bool same = got[i] == want.value || (std::isnan(got[i]) && std::isnan(want.value));
      if (!same && !std::isinf(want.bound) && !(std::fabs(got[i] - want.value) <= want.bound))
        return cat("output ", o, " element ", i, ": got ", got[i], ", expected ", want.value, " +- ", want.bound);
    }
  }
  return "";
}

// Lowers every point and compares its results with the oracle. Calls and_of(kernel, point), and adds to *kernels.
template <typename F>
void expect_meanings(const Graph& group, const Domain& domain, const Space& space, const Machine& machine,
                     const std::vector<Point>& points, int* kernels, F&& and_of) {
  for (const Point& point : points) {
    const auto kernel = lower(group, domain, space.schedule(point), machine);
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << print(group) << space.text(point);
    ++*kernels;
    const std::string difference = compare(group, *kernel);
    ASSERT_EQ(difference, "") << print(group) << "\n" << space.text(point) << "\n" << print(*kernel);
    and_of(*kernel, point);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace wl::testing

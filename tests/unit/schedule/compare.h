// Compares the results that the interpreter computes with a kernel with those of the oracle.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/ir/outputs.h"
#include "tests/unit/schedule/groups.h"

namespace wl::testing {

inline Graph parsed(const std::string& text) {
  const auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << text;
  return *graph;
}

// A group, and the space of its schedules on a machine.
struct Searched {
  Searched(const std::string& text, std::string_view target)
      : graph(parsed(text)),
        machine(machine_with(target)),
        domain(analyze(graph, machine).value()),
        space(space_of(graph, domain, machine).value()) {}
  Kernel lowered(const Point& point) const { return lower(graph, domain, space.schedule(point), machine).value(); }

  Graph graph;
  Machine machine;
  Domain domain;
  Space space;
};

// Compares the interpreter's outputs with the oracle's; returns "" when all are within the bound.
inline std::string compare(const Graph& group, const Kernel& kernel) {
  const uint64_t seed = 7;
  const InputReader inputs = generated_inputs(group, seed);
  std::vector<std::vector<double>> buffers;
  for (NodeId input : group.inputs()) {
    buffers.emplace_back();
    for (int64_t i = 0; i < elements(group.nodes[input].shape); ++i) buffers.back().push_back(inputs(input, i));
  }
  const auto expected = evaluate_outputs(group, inputs);
  if (!expected.ok()) return std::string(expected.status().message());
  for (const std::vector<Value>& output : *expected) buffers.emplace_back(output.size(), -12345.0);
  const absl::Status ran = interpret(kernel, buffers);
  if (!ran.ok()) return std::string(ran.message());
  for (size_t o = 0; o < group.outputs.size(); ++o) {
    const std::vector<double>& got = buffers[group.inputs().size() + o];
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string wrong = difference(got[i], (*expected)[o][i]);
      if (!wrong.empty()) return cat("output ", o, " element ", i, ": ", wrong);
    }
  }
  return "";
}

// Expects that parsing the text of a kernel gives the same kernel.
inline void expect_reads_back(const Kernel& kernel) {
  const auto again = parse_kernel(print(kernel));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(*again, kernel);
}

// Expects that a kernel computes its group, by comparison with the oracle. `plan` is shown if it does not.
inline void expect_meaning(const Graph& group, const Kernel& kernel, const std::string& plan) {
  const std::string difference = compare(group, kernel);
  ASSERT_EQ(difference, "") << print(group) << "\n" << plan << "\n" << print(kernel);
}

// Lowers every point and expects that its kernel computes the group. Calls and_of(kernel, point) for each, and adds the
// number of kernels to *kernels.
template <typename F>
void expect_meanings(const Graph& group, const Domain& domain, const Space& space, const Machine& machine,
                     const std::vector<Point>& points, int* kernels, F&& and_of) {
  for (const Point& point : points) {
    const auto kernel = lower(group, domain, space.schedule(point), machine);
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << print(group) << space.text(point);
    ++*kernels;
    expect_meaning(group, *kernel, space.text(point));
    if (::testing::Test::HasFatalFailure()) return;
    and_of(*kernel, point);
    if (::testing::Test::HasFatalFailure()) return;
  }
}
inline void expect_meanings(const Graph& group, const Domain& domain, const Space& space, const Machine& machine,
                            const std::vector<Point>& points, int* kernels) {
  expect_meanings(group, domain, space, machine, points, kernels, [](const Kernel&, const Point&) {});
}

// Like expect_meanings(), for the first `most` seeds of the space. Seeds that lowering does not implement are left out.
inline void expect_seeds_mean(const Graph& group, const Domain& domain, const Machine& machine, size_t most,
                              int* kernels) {
  const Space space = space_of(group, domain, machine).value();
  for (size_t i = 0; i < space.seeds.size() && i < most; ++i) {
    const auto kernel = lower(group, domain, space.schedule(space.seeds[i]), machine);
    if (absl::IsUnimplemented(kernel.status())) continue;
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << print(group) << space.text(space.seeds[i]);
    ++*kernels;
    expect_meaning(group, *kernel, space.text(space.seeds[i]));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace wl::testing

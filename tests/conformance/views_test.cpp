// Every view, alone and applied to other views, for all dtypes and for every CPU row of kTargets that this machine can
// run: pads with different fills, concats of inputs, constants and coordinates, negative steps, windows over padding,
// reductions and contractions of views, and extents 0 and 1. The graphs are compiled and run.
#include <gtest/gtest.h>

#include "compiler/cover/cover.h"
#include "compiler/ir/build.h"
#include "compiler/ir/text.h"
#include "tests/conformance/by_compilers.h"

namespace wl {
namespace {

NodeId pad(Builder& to, NodeId x, std::vector<int64_t> low, std::vector<int64_t> high, double value) {
  return to.add_node(
      {.op = Op::pad, .operands = {x}, .ints = std::move(low), .ints2 = std::move(high), .value = value});
}

NodeId concat(Builder& to, std::vector<NodeId> parts, int64_t axis) {
  return to.add_node({.op = Op::concat, .operands = std::move(parts), .ints = {axis}});
}

NodeId window(Builder& to, NodeId x, int64_t axis, int64_t size, int64_t stride, int64_t dilation) {
  return to.add_node({.op = Op::window, .operands = {x}, .ints = {axis}, .ints2 = {size, stride, dilation}});
}

// Each row adds nodes to a graph that compute one value from two inputs, x [6,37] and y [6,5].
using Row = NodeId (*)(Builder& to, NodeId x, NodeId y);
constexpr Row kRows[] = {
    [](Builder& to, NodeId x, NodeId) {
      return pad(to, x, {1, 3}, {2, 20}, 1);
    },
    [](Builder& to, NodeId x, NodeId) {  // a pad around a pad with another fill; a slice with negative steps
      const NodeId twice = pad(to, pad(to, x, {1, 2}, {0, 2}, 1), {0, 5}, {1, 5}, 0);
      return to.slice(twice, {7, 45}, {-1, -2}, {8, 23});
    },
    [](Builder& to, NodeId x, NodeId) {
      return to.transpose(pad(to, x, {5, 0}, {5, 11}, 0), {1, 0});
    },
    [](Builder& to, NodeId x, NodeId) {
      return to.reshape(pad(to, to.reshape(x, {2, 3, 37}), {0, 1, 2}, {0, 1, 1}, 1), {10, 40});
    },
    [](Builder& to, NodeId x, NodeId y) {
      return concat(to, {x, y, to.constant(1, to.node(x).dtype, {6, 3}), y}, 1);
    },
    [](Builder& to, NodeId x, NodeId y) {
      return concat(to, {pad(to, y, {0, 0}, {0, 32}, 1), x}, 0);
    },
    [](Builder& to, NodeId x, NodeId y) {  // operands of a concat with extents 0 and 1; a concat inside a pad
      const NodeId none = to.slice(x, {0, 0}, {1, 1}, {6, 0}), one = to.slice(y, {0, 4}, {1, 1}, {6, 1});
      return pad(to, concat(to, {one, none, x, one}, 1), {0, 1}, {0, 1}, 1);
    },
    [](Builder& to, NodeId x, NodeId) {
      return window(to, pad(to, x, {0, 1}, {0, 1}, 1), 1, 3, 1, 1);
    },
    [](Builder& to, NodeId x, NodeId) {
      return window(to, window(to, pad(to, x, {2, 1}, {2, 2}, 0), 1, 3, 2, 2), 0, 2, 1, 2);
    },
    [](Builder& to, NodeId x, NodeId) {
      return to.reduce(Op::reduce_max, window(to, pad(to, x, {0, 1}, {0, 1}, 0), 1, 3, 2, 1), {2});
    },
    [](Builder& to, NodeId x, NodeId) {
      return to.reduce(Op::reduce_min, pad(to, x, {0, 3}, {0, 9}, 1), {1});
    },
    [](Builder& to, NodeId x, NodeId) {
      return to.reduce(Op::reduce_max, pad(to, x, {3, 0}, {1, 2}, 0), {0});
    },
    [](Builder& to, NodeId x, NodeId y) {
      const NodeId last = to.constant(-1, DType::i64, {6, 2});
      return concat(to, {to.take_along(x, last, 1), y}, 1);
    },
    [](Builder& to, NodeId x, NodeId) {  // a gather whose indices are coordinates, padded with -2
      const NodeId at = pad(to, to.iota(DType::i64, {6, 35}, 1), {0, 1}, {0, 1}, -2);
      return to.take_along(x, at, 1);
    },
    [](Builder& to, NodeId x, NodeId y) {  // a convolution along rows
      return to.contract(window(to, pad(to, x, {0, 2}, {0, 2}, 0), 1, 5, 1, 1), y, "cwk,ck->w");
    },
    [](Builder& to, NodeId x, NodeId y) {
      return to.contract(y, window(to, pad(to, x, {0, 4}, {0, 2}, 0), 1, 5, 2, 1), "ok,cwk->ocw");
    },
    [](Builder& to, NodeId x, NodeId y) {
      return to.contract(concat(to, {y, x, y}, 1), concat(to, {x, y, y}, 1), "mk,nk->mn");
    },
};

class Views : public ::testing::TestWithParam<std::string> {};

TEST_P(Views, OfEveryDTypeMeanWhatTheGraphMeans) {
  const std::string& target = GetParam();
  const Machine machine = testing::machine_named(target);
  testing::CompiledChecks checks("views_" + target.substr(4));
  int kernels = 0;
  for (int d = 0; d < kDTypeCount; ++d)
    for (size_t r = 0; r < std::size(kRows); ++r) {
      const DType dtype = static_cast<DType>(d);
      // Compiling is slow, so one dtype is tested with all rows of kRows, and each other dtype with a third of them.
      if (dtype != DType::f32 && (static_cast<int>(r) + d) % 3 != 0) continue;
      Builder builder;
      const Fill fill = {.low = 0, .high = 9};
      const NodeId x = builder.input("x", dtype, {6, 37}, fill), y = builder.input("y", dtype, {6, 5}, fill);
      builder.output("z", kRows[r](builder, x, y));
      const auto graph = builder.finish();
      if (!graph.ok()) {  // arithmetic on b1 is illegal, so such a graph is skipped
        EXPECT_TRUE(dtype == DType::b1) << graph.status();
        continue;
      }
      const auto cover = cover_greedy(*graph, machine);
      ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(*graph);
      for (const Group& part : cover->groups) {
        testing::add_by_compilers(checks, extract(*graph, part), target, dtype == DType::f32, cat(name_of(dtype), " "),
                                  &kernels);
        if (HasFatalFailure()) return;
      }
    }
  EXPECT_GT(kernels, 90);
  checks.expect_right();
}

INSTANTIATE_TEST_SUITE_P(Targets, Views, ::testing::ValuesIn(testing::runnable_targets()),
                         [](const ::testing::TestParamInfo<std::string>& target) { return target.param.substr(4); });

}  // namespace
}  // namespace wl

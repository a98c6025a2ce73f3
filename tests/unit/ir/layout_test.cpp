// The channels-last layout of convolutions keeps a graph's values, and adds transposes only where they are needed.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/ir/eval.h"
#include "compiler/ir/layout/channels_last.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/outputs.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/ir/windows.h"

namespace wl {
namespace {

Graph graph_of(const std::string& text) {
  const absl::StatusOr<Graph> graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

void expect_same(const Graph& given, const Graph& made) {
  ASSERT_EQ(made.outputs.size(), given.outputs.size());
  const auto expected = testing::values_of_outputs(given, 7), found = testing::values_of_outputs(made, 7);
  for (size_t o = 0; o < expected.size(); ++o) {
    ASSERT_EQ(made.nodes[made.outputs[o].node].shape, given.nodes[given.outputs[o].node].shape);
    for (size_t i = 0; i < expected[o].size(); ++i) {
      const Value &a = expected[o][i], &b = found[o][i];
      ASSERT_TRUE(testing::agrees(b.value, a.value, a.bound + b.bound))
          << "output " << o << " element " << i << ": " << a.value << " became " << b.value << "\n"
          << print(given) << print(made);
    }
  }
}

// Returns the graph of a text with channels last, simplified. Checks that neither step changes the graph's values.
Graph stored(const std::string& text) {
  const Graph given = graph_of(text);
  const absl::StatusOr<Graph> made = channels_last(given);
  EXPECT_TRUE(made.ok()) << made.status();
  expect_same(given, *made);
  const Graph simple = simplify(*made).value();
  expect_same(given, simple);
  return simple;
}

int64_t count(const Graph& graph, Op op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == op; });
}

std::string einsums(const Graph& graph) {
  std::string all;
  for (const Node& node : graph.nodes)
    if (node.op == Op::contract) all += node.text + " ";
  return all;
}

// Two convolutions, with a bias, a residual and a pooling between them.
constexpr char kBlock[] = R"(graph {
  %0 = input "x" : f32[4,9,9] normal(0,1)
  %1 = input "w" : f32[2,4,3,3,3] normal(0,1)
  %2 = input "bias" : f32[6] normal(0,1)
  %3 = input "v" : f32[5,6] normal(0,1)
  %4 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[4,11,11]
  %5 = window %4 axes=[1,2] params=[3,1,1,3,1,1] : f32[4,9,9,3,3]
  %6 = contract %5 %1 "kmoli,nkliu->numo" : f32[2,3,9,9]
  %7 = reshape %6 : f32[6,9,9]
  %8 = broadcast %2 dims=[0] : f32[6,9,9]
  %9 = add %7 %8 : f32[6,9,9]
  %10 = constant 0 : f32[6,9,9]
  %11 = max %9 %10 : f32[6,9,9]
  %12 = window %11 axes=[1,2] params=[3,2,1,3,2,1] : f32[6,4,4,3,3]
  %13 = reduce_max %12 axes=[3,4] : f32[6,4,4]
  %14 = reshape %13 : f32[6,16]
  %15 = contract %14 %3 "km,nk->nm" : f32[5,16]
  %16 = reshape %15 : f32[5,4,4]
)";

TEST(ChannelsLast, ValuesBetweenConvolutionsAreNotTransposed) {
  const Graph graph = stored(cat(kBlock, "  %17 = reduce_sum %16 axes=[1,2] : f32[5]\n  output \"y\" %17\n}"));
  EXPECT_EQ(count(graph, Op::transpose), 0) << print(graph);
  EXPECT_EQ(einsums(graph), "kmoli,nkliu->monu mk,nk->mn ") << print(graph);
}

TEST(ChannelsLast, OutputsKeepTheirOrder) {
  const Graph graph = stored(cat(kBlock, "  output \"y\" %16\n  output \"between\" %11\n}"));
  EXPECT_EQ(count(graph, Op::transpose), 2) << print(graph);
}

TEST(ChannelsLast, OtherOpsReadWhatTheyNeed) {
  const Graph graph = stored(cat(kBlock, R"(  %17 = input "z" : f32[5,4,4] normal(0,1)
  %18 = add %16 %17 : f32[5,4,4]
  %19 = iota axis=[0] : f32[5,4,4]
  %20 = mul %18 %19 : f32[5,4,4]
  %21 = concat %20 %17 axis=[0] : f32[10,4,4]
  %22 = slice %21 starts=[9,0,3] steps=[-2,1,-1] : f32[5,4,4]
  %23 = transpose %22 perm=[2,0,1] : f32[4,5,4]
  %24 = reshape %23 : f32[20,4]
  %25 = reduce_sum %24 axes=[1] : f32[20]
  output "y" %25
  %26 = input "i" : i64[5,4,1] uniform(0,4)
  %27 = take_along %20 %26 axis=[2] : f32[5,4,1]
  output "z" %27
  %28 = reshape %20 : f32[80]
  output "u" %28
})"));
  EXPECT_GE(count(graph, Op::transpose), 2) << print(graph);
}

TEST(ChannelsLast, WhatHasNoConvolutionStaysAsItIs) {
  const Graph product = graph_of(R"(graph {
  %0 = input "x" : f32[4,8] normal(0,1)
  %1 = input "w" : f32[8,5] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[4,5]
  output "y" %2
})");
  EXPECT_EQ(channels_last(product).value(), product);
}

TEST(ChannelsLast, RandomConvolutionsMeanWhatTheyDid) {
  for (int64_t seed = 0; seed < testing::scaled(100); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    stored(testing::ConvolutionText(static_cast<uint64_t>(seed), seed % 2 == 0 ? 0 : 4).text());
    if (HasFailure()) return;
  }
}

TEST(ChannelsLast, RandomGraphsMeanWhatTheyDid) {
  int64_t changed = 0;
  for (int64_t seed = 0; seed < testing::scaled(20'000); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = random_graph(static_cast<uint64_t>(seed));
    const absl::StatusOr<Graph> made = channels_last(graph);
    ASSERT_TRUE(made.ok()) << made.status() << print(graph);
    if (*made == graph) continue;
    ++changed;
    expect_same(graph, *made);
    if (HasFailure()) return;
  }
  std::printf("%ld graphs changed\n", static_cast<long>(changed));
  EXPECT_GT(changed, testing::scaled(20));
}

TEST(ChannelsLast, ChannelsOfGroupsAndOfDepthwiseConvolutionsAreInnermost) {
  const Graph graph = stored(R"(graph {
  %0 = input "x" : f32[2,3,4,6,6] normal(0,1)
  %1 = input "w" : f32[3,5,4] normal(0,1)
  %2 = input "v" : f32[15,3,3] normal(0,1)
  %3 = contract %0 %1 "bgkmo,gnk->bgnmo" : f32[2,3,5,6,6]
  %4 = reshape %3 : f32[2,15,6,6]
  %5 = window %4 axes=[2,3] params=[3,1,1,3,1,1] : f32[2,15,4,4,3,3]
  %6 = contract %5 %2 "bcmoli,cli->bcmo" : f32[2,15,4,4]
  %7 = reduce_sum %6 axes=[2,3] : f32[2,15]
  output "y" %7
})");
  EXPECT_EQ(count(graph, Op::transpose), 0) << print(graph);
}

}  // namespace
}  // namespace wl

// Folding of weights: which values are folded, and that the graph's results stay the same.
#include "compiler/ir/weights/fold_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/build.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "random_graph.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/folding.h"

namespace wl {
namespace {

using ::testing::ElementsAre;
using testing::expect_same_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPanels;
using testing::names_of;
using ::testing::Not;

// relu(batch norm(convolution)), written in primitive ops. The convolution's channels are axis 1 of [1,6,5,5].
struct Normalised {
  Builder b;
  NodeId product, result;
  std::vector<std::string> weights = {"w", "gamma", "beta", "mean", "var"};

  explicit Normalised(int64_t groups = 1) {
    const NodeId x = b.input("x", DType::f32, {1, groups, 4 / groups, 5, 5});
    const NodeId w = b.input("w", DType::f32, {groups, 6 / groups, 4 / groups});
    const auto channel = [&](const char* name) { return b.input(name, DType::f32, {6}); };
    const NodeId gamma = channel("gamma"), beta = channel("beta"), mean = channel("mean"), var = channel("var");
    const auto along = [&](NodeId v) { return b.broadcast(v, {1, 6, 5, 5}, {1}); };
    product = b.reshape(b.contract(x, w, "agcpq,goc->agopq"), {1, 6, 5, 5});
    const NodeId positive = b.add(b.mul(var, var), b.constant(0.5, DType::f32, {6}));
    const NodeId factor = b.mul(gamma, b.elementwise(Op::rsqrt, {positive}));
    result = b.add(b.mul(b.sub(product, along(mean)), along(factor)), along(beta));
  }
};

TEST(FoldWeights, ABatchNormMovesIntoTheProductBeforeIt) {
  for (const int64_t groups : {1, 2}) {
    Normalised n(groups);
    n.b.output("y", n.result);
    const Graph graph = n.b.finish().value();
    const WeightFolding folding = fold_weights(graph, n.weights).value();
    // The factor of the batch normalisation is folded into w, and its mean and shift into one sum. Some exporters write
    // models in this form.
    EXPECT_THAT(names_of(folding), ElementsAre("w:folded", "mean:folded"));
    EXPECT_THAT(folding.weights, ElementsAre("w:folded", "mean:folded"));
    const std::string text = print(folding.graph);
    EXPECT_THAT(text, Not(HasSubstr(" mul ")));
    EXPECT_THAT(text, Not(HasSubstr(" sub ")));
    EXPECT_THAT(text, HasSubstr(" add "));
    expect_same_values(graph, folding, 7);
  }
}

TEST(FoldWeights, AProductThatIsReadTwiceKeepsItsWeights) {
  Normalised n;
  n.b.output("y", n.result);
  n.b.output("product", n.product);
  const Graph graph = n.b.finish().value();
  const WeightFolding folding = fold_weights(graph, n.weights).value();
  EXPECT_THAT(names_of(folding), ElementsAre("gamma:folded"));
  expect_same_values(graph, folding, 7);
}

TEST(FoldWeights, AFactorThatDiffersAlongTheDataStays) {
  Normalised n;
  const NodeId v = n.b.input("v", DType::f32, {6, 5});
  n.b.output("y", n.b.mul(n.product, n.b.broadcast(v, {1, 6, 5, 5}, {1, 2})));
  n.weights.push_back("v");
  const Graph graph = n.b.finish().value();
  const WeightFolding folding = fold_weights(graph, n.weights).value();
  EXPECT_THAT(names_of(folding), IsEmpty());
  expect_same_values(graph, folding, 7);
}

TEST(FoldWeights, ViewsAndWhatWouldGrowStay) {
  Builder b;
  const NodeId x = b.input("x", DType::f32, {4, 8});
  const NodeId w = b.transpose(b.input("w", DType::f32, {8, 4}), {1, 0});
  const NodeId q = b.cast(b.input("q", DType::i8, {8, 8}), DType::f32);
  b.output("y", b.contract(b.add(x, w), q, "ab,bc->ac"));
  const Graph graph = b.finish().value();
  const WeightFolding folding = fold_weights(graph, {"w", "q"}).value();
  EXPECT_THAT(names_of(folding), IsEmpty());
  EXPECT_EQ(print(folding.graph), print(graph));
}

// T5 puts relative positions into buckets by log(2) / log(16) * 8. The value is 2 if every intermediate is rounded to
// f32, as folding must do, and a little less in double precision.
TEST(FoldWeights, WhatIsMadeAnIntegerIsRoundedAsStoredValuesAre) {
  const Graph graph = *parse(R"(graph {
    %0 = input "distance" : i64[4] normal(0,1)
    %1 = cast %0 : f32[4]
    %2 = constant 8 : f32[4]
    %3 = div %1 %2 : f32[4]
    %4 = log %3 : f32[4]
    %5 = constant 2.7725887 : f32[4]
    %6 = div %4 %5 : f32[4]
    %7 = mul %6 %2 : f32[4]
    %8 = cast %7 : i64[4]
    output "bucket" %8
  })");
  const double distances[] = {15, 16, 32, 64};
  char bytes[4 * 8];
  ASSERT_TRUE(write_value(
                  {"bucket", graph}, [&](NodeId, int64_t index) { return distances[index]; }, bytes)
                  .ok());
  std::vector<double> buckets;
  for (int64_t i = 0; i < 4; ++i) buckets.push_back(load_element(DType::i64, bytes, static_cast<uint64_t>(i)));
  EXPECT_THAT(buckets, ElementsAre(1, 2, 4, 6));
}

TEST(FoldWeights, IntegersThatDoublesDoNotHoldAreComputedByEveryRun) {
  Builder b;
  const auto weight = [&](const char* name, std::vector<double> values) {
    Fill fill;
    fill.literal = std::move(values);
    return b.input(name, DType::i64, {2}, fill);
  };
  const NodeId sum = b.add(weight("c", {0x1p53, 0x1p62}), weight("c:low", {1, 3}));
  b.output("y", b.elementwise(Op::eq, {b.input("x", DType::i64, {2}), sum}));
  const WeightFolding folding = fold_weights(b.finish().value(), {"c", "c:low"}).value();
  EXPECT_THAT(names_of(folding), IsEmpty());
  EXPECT_THAT(folding.weights, ::testing::UnorderedElementsAre("c", "c:low"));
}

TEST(FoldWeights, SmallWeightsAreComputedAtOnce) {
  Builder b;
  const NodeId x = b.input("x", DType::f32, {3});
  const NodeId v = b.input("v", DType::f32, {3}, {.literal = {1, 2, 3}});
  const NodeId w = b.input("w", DType::f32, {3}, {.literal = {10, 20, 30}});
  b.output("y", b.add(x, b.mul(v, w)));
  const WeightFolding folding = fold_weights(b.finish().value(), {"v", "w"}).value();
  ASSERT_THAT(names_of(folding), ElementsAre("v:folded"));
  for (const Node& node : folding.graph.nodes) {
    if (node.text != "v:folded") continue;
    EXPECT_THAT(node.fill.literal, ElementsAre(10, 40, 90));
  }
}

class FoldWeightsFuzz : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, FoldWeightsFuzz, ::testing::Range(0, testing::kShards));

TEST_P(FoldWeightsFuzz, KeepsTheValuesOfRandomGraphs) {
  const auto [first, last] = seeds(20'000, 0);
  int folded = 0;
  for (uint64_t seed = first; seed < last && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = random_graph(seed);
    std::mt19937_64 random(seed);
    std::vector<std::string> weights;
    for (NodeId input : graph.inputs())
      if (random() % 4 != 0) weights.push_back(graph.nodes[input].text);
    const auto folding = fold_weights(graph, weights, random() % 2 != 0 ? kPanels : std::vector<int64_t>());
    ASSERT_TRUE(folding.ok()) << folding.status();
    ASSERT_TRUE(verify(folding->graph).ok()) << verify(folding->graph);
    folded += static_cast<int>(folding->folded.size());
    expect_same_values(graph, *folding, seed);
  }
  EXPECT_GT(folded, static_cast<int>(last - first) / 20);
}

}  // namespace
}  // namespace wl

// Folding of weights: which values are folded, which are not, and that the results stay the same.
#include "compiler/ir/weights/fold_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "compiler/ir/build.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "random_graph.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<int64_t> kPanels = {64, 32, 48};

std::vector<std::string> names_of(const WeightFolding& folding) {
  std::vector<std::string> names;
  for (const FoldedWeight& folded : folding.folded) names.push_back(folded.name);
  return names;
}

// Reads an element of an input, which is given by name.
using ByName = std::function<double(const std::string& name, int64_t index)>;
std::vector<Value> values_of(const Graph& graph, const Output& output, const ByName& read) {
  Query query{output.node, {}};
  for (int64_t i = 0; i < elements(graph.nodes[output.node].shape); ++i) query.indices.push_back(i);
  const auto values =
      evaluate(graph, [&](NodeId input, int64_t index) { return read(graph.nodes[input].text, index); }, {query});
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? (*values)[0] : std::vector<Value>(query.indices.size());
}

// Checks that the outputs of `graph` and of the folded graph agree.
void expect_same_values(const Graph& graph, const WeightFolding& folding, uint64_t seed) {
  const InputReader generated = generated_inputs(graph, seed);
  std::map<std::string, NodeId> inputs;
  for (NodeId input : graph.inputs()) inputs[graph.nodes[input].text] = input;
  const ByName original = [&](const std::string& name, int64_t index) { return generated(inputs.at(name), index); };
  std::map<std::string, std::vector<double>> folded;
  for (const FoldedWeight& weight : folding.folded) {
    const DType dtype = weight.from.nodes[weight.from.outputs[0].node].dtype;
    for (const Value& value : values_of(weight.from, weight.from.outputs[0], original))
      folded[weight.name].push_back(round_to(dtype, value.value));
  }
  const ByName after = [&](const std::string& name, int64_t index) {
    const auto found = folded.find(name);
    return found == folded.end() ? original(name, index) : found->second[static_cast<size_t>(index)];
  };
  ASSERT_EQ(folding.graph.outputs.size(), graph.outputs.size());
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    ASSERT_EQ(folding.graph.outputs[o].name, graph.outputs[o].name);
    const std::vector<Value> expected = values_of(graph, graph.outputs[o], original);
    const std::vector<Value> got = values_of(folding.graph, folding.graph.outputs[o], after);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double bound = got[i].bound + expected[i].bound;
      if (!std::isfinite(bound) || (std::isnan(got[i].value) && std::isnan(expected[i].value))) continue;
      if (got[i].value == expected[i].value) continue;
      ASSERT_LE(std::fabs(got[i].value - expected[i].value), bound) << "element " << i << "\n"
                                                                    << print(graph) << "\nfolded:\n"
                                                                    << print(folding.graph);
    }
  }
}

// relu(batch norm(convolution)) in primitives. The product's channels are axis 1 of [1,6,5,5].
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
    // The factor has moved into w, and mean and shift are one sum. The graph equals that of an exporter that folds.
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

// The buckets of relative positions that T5 has: log(2) / log(16) * 8 is 2 if every value is stored in f32, and a
// little less in double precision.
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
  const auto bytes = value_of({"bucket", graph}, [&](NodeId, int64_t index) { return distances[index]; });
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  std::vector<double> buckets;
  for (int64_t i = 0; i < 4; ++i) buckets.push_back(load_element(DType::i64, bytes->data(), static_cast<uint64_t>(i)));
  EXPECT_THAT(buckets, ElementsAre(1, 2, 4, 6));
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

// A product of x and w with the letters' extents, and its folding into panels.
struct InPanels {
  Graph graph;
  WeightFolding folding;

  InPanels(const std::string& einsum, const std::map<char, int64_t>& extents, int weight = 1) {
    const Einsum letters = parse_einsum(einsum).value();
    const auto shape = [&](const std::string& list) {
      Shape out;
      for (const char letter : list) out.push_back(extents.at(letter));
      return out;
    };
    Builder b;
    const NodeId one = b.input(weight == 0 ? "w" : "x", DType::f32, shape(letters.a));
    const NodeId other = b.input(weight == 0 ? "x" : "w", DType::f32, shape(letters.b));
    b.output("y", b.elementwise(Op::neg, {b.contract(one, other, einsum)}));
    graph = b.finish().value();
    folding = fold_weights(graph, {"w"}, kPanels).value();
  }
};

TEST(WeightPanels, AProductReadsColumnsThatAreNeighbours) {
  struct Case {
    const char *einsum, *reads;
    int weight;
    Shape panels;
  };
  const std::map<char, int64_t> extents = {{'m', 3}, {'k', 5}, {'l', 2}, {'n', 128}, {'o', 4}};
  for (const Case& one :
       {Case{"mk,nk->mn", "mk,akn->man", 1, {2, 5, 64}}, Case{"mk,kn->mn", "mk,akn->man", 1, {2, 5, 64}},
        Case{"nk,mk->mn", "akn,mk->man", 0, {2, 5, 64}}, Case{"mkl,nlk->mn", "mkl,akln->man", 1, {2, 5, 2, 64}},
        Case{"mk,nok->omn", "mk,oakn->oman", 1, {4, 2, 5, 64}}, Case{"mk,nk->nm", "mk,akn->anm", 1, {2, 5, 64}},
        Case{"kmol,nkl->nmo", "kmol,akln->anmo", 1, {2, 5, 2, 64}}}) {
    SCOPED_TRACE(one.einsum);
    const InPanels in(one.einsum, extents, one.weight);
    ASSERT_THAT(names_of(in.folding), ElementsAre("w:panels"));
    EXPECT_THAT(in.folding.weights, ElementsAre("w:panels"));
    const Graph& from = in.folding.folded[0].from;
    EXPECT_EQ(from.nodes[from.outputs[0].node].shape, one.panels);
    EXPECT_THAT(print(in.folding.graph), HasSubstr(cat("\"", one.reads, "\"")));
    expect_same_values(in.graph, in.folding, 7);
  }
}

TEST(WeightPanels, HaveTheFirstWidthThatDividesTheColumns) {
  Builder b;
  b.output("y", {b.contract(b.input("x", DType::f32, {3, 5}), b.input("w", DType::f32, {5, 48}), "mk,kn->mn")});
  const Graph graph = b.finish().value();
  const auto panels = [&](const std::vector<int64_t>& widths) {
    const WeightFolding folding = fold_weights(graph, {"w"}, widths).value();
    expect_same_values(graph, folding, 11);
    return folding.graph.nodes[folding.graph.inputs()[1]].shape;
  };
  EXPECT_EQ(panels({64, 16, 48}), (Shape{3, 5, 16}));
  EXPECT_EQ(panels({64, 32, 24}), (Shape{2, 5, 24}));
  EXPECT_EQ(panels({}), (Shape{5, 48}));
}

TEST(WeightPanels, OtherOperandsStayAsTheyAre) {
  const std::map<char, int64_t> extents = {{'b', 2}, {'m', 3}, {'k', 5}, {'n', 64}, {'p', 7}, {'q', 96}};
  for (const char* einsum : {"bmk,bnk->bmn",  // a batch of products
                             "mk,pk->mp",     // fewer columns than a vector
                             "mk,pk->pm",     // and they are not the result's last axis
                             "mk,kn->mn"})    // one panel already
    EXPECT_THAT(names_of(InPanels(einsum, extents).folding), IsEmpty()) << einsum;
  const InPanels half("mk,qk->mq", extents);
  ASSERT_THAT(names_of(half.folding), ElementsAre("w:panels"));
  EXPECT_THAT(print(half.folding.graph), HasSubstr("f32[3,5,32]"));
  EXPECT_THAT(names_of({fold_weights(half.graph, {"w"}).value()}), IsEmpty()) << "they are for those who ask";
}

TEST(WeightPanels, AnyNumberOfColumnsIsInPanels) {
  const std::map<char, int64_t> extents = {{'m', 3}, {'k', 5}, {'l', 2}, {'a', 8}, {'b', 40}, {'c', 144}, {'d', 1000}};
  const auto shape_of = [&](const char* einsum) {
    const InPanels in(einsum, extents);
    expect_same_values(in.graph, in.folding, 7);
    return in.folding.folded.empty() ? Shape{} : in.folding.folded[0].from.nodes.back().shape;
  };
  EXPECT_THAT(shape_of("mk,ak->ma"), ElementsAre(5, 8));
  EXPECT_THAT(shape_of("mk,bk->mb"), ElementsAre(5, 40));
  EXPECT_THAT(shape_of("mlk,bkl->bm"), ElementsAre(2, 5, 40));
  EXPECT_THAT(shape_of("mk,ck->mc"), ElementsAre(3, 5, 48));
  EXPECT_THAT(shape_of("mk,dk->md"), ElementsAre(5, 1000));
  EXPECT_THAT(shape_of("mk,kd->md"), IsEmpty()) << "one panel already";
}

// As those of a transposed convolution are, some of whose taps are zeros.
TEST(WeightPanels, MayBeLargerByLessThanTwice) {
  for (const int64_t rows : {65, 64}) {
    const Graph graph = *parse(cat("graph {\n  %0 = input \"x\" : f32[8,5] normal(0,1)\n  %1 = input \"w\" : f32[",
                                   rows, ",5] normal(0,1)\n  %2 = pad %1 low=[0,0] high=[", 128 - rows,
                                   ",0] value=0 : f32[128,5]\n  %3 = contract %0 %2 \"mk,nk->mn\" : f32[8,128]\n",
                                   "  output \"y\" %3\n}\n"));
    const WeightFolding folding = fold_weights(graph, {"w"}, kPanels).value();
    ASSERT_EQ(folding.folded.size(), rows > 64 ? 1 : 0);
    expect_same_values(graph, folding, 7);
  }
}

TEST(WeightPanels, ProductsShareThem) {
  Builder b;
  const NodeId x = b.input("x", DType::f32, {3, 5}), z = b.input("z", DType::f32, {2, 5});
  const NodeId w = b.input("w", DType::f32, {128, 5});
  b.output("y", b.contract(x, w, "mk,nk->mn"));
  b.output("v", b.contract(z, w, "mk,nk->mn"));
  const Graph graph = b.finish().value();
  const WeightFolding folding = fold_weights(graph, {"w"}, kPanels).value();
  EXPECT_THAT(folding.weights, ElementsAre("w:panels"));
  expect_same_values(graph, folding, 7);
}

// A weight that is read in two orders would be in memory twice.
TEST(WeightPanels, AWeightWithAnotherReaderStaysAsItIs) {
  for (int other = 0; other < 4; ++other) {
    Builder b;
    const NodeId x = b.input("x", DType::f32, {3, 64}), w = b.input("w", DType::f32, {64, 64});
    b.output("y", b.contract(x, w, "mk,nk->mn"));
    if (other == 0) b.output("u", b.elementwise(Op::exp, {b.add(w, b.input("t", DType::f32, {64, 64}))}));
    if (other == 1) b.output("u", b.contract(x, w, "mk,kn->mn"));
    if (other == 2) b.output("u", b.contract(x, b.transpose(w, {1, 0}), "mk,nk->mn"));
    if (other == 3) b.output("u", w);
    const Graph graph = b.finish().value();
    const WeightFolding folding = fold_weights(graph, {"w"}, kPanels).value();
    EXPECT_THAT(folding.weights, ElementsAre("w")) << other;
    expect_same_values(graph, folding, 7);
  }
}

TEST(WeightPanels, AreOfFoldedWeightsToo) {
  Builder b;
  const NodeId w = b.input("w", DType::f32, {64, 5}), v = b.input("v", DType::f32, {64, 5});
  b.output("y", b.contract(b.input("x", DType::f32, {3, 5}), b.mul(w, v), "mk,nk->mn"));
  const Graph graph = b.finish().value();
  const WeightFolding folding = fold_weights(graph, {"w", "v"}, kPanels).value();
  ASSERT_THAT(names_of(folding), ElementsAre("w:panels"));
  EXPECT_FALSE(value_of_moved(folding.folded[0], std::string(64 * 5 * 4, 'x')));
  expect_same_values(graph, folding, 7);
}

// Bytes are moved as the oracle says, whatever an element's size.
TEST(WeightPanels, BytesMoveAsTheirElementsDo) {
  for (const DType dtype : {DType::i8, DType::f16, DType::f32, DType::f64}) {
    Builder b;
    const NodeId split = b.reshape(b.input("w", dtype, {6, 35}), {2, 3, 5, 7});
    b.output("y", b.transpose(b.reshape(b.transpose(split, {3, 0, 2, 1}), {14, 15}), {1, 0}));
    const FoldedWeight weight{"y", b.finish().value()};
    std::string bytes(static_cast<size_t>(6 * 35 * size_of(dtype)), '\0');
    const auto value = [](int64_t index) { return static_cast<double>(index % 101); };
    for (int64_t i = 0; i < 6 * 35; ++i) store_element(dtype, bytes.data(), static_cast<uint64_t>(i), value(i));
    const std::string moved = value_of_moved(weight, bytes).value();
    EXPECT_EQ(moved, value_of(weight, [&](NodeId, int64_t index) { return value(index); }).value());
    EXPECT_EQ(operand_of_moved(weight, moved).value(), bytes);
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

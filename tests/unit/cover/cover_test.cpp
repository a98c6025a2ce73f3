
#include "compiler/cover/cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "compiler/domain/domain.h"
#include "compiler/ir/build.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

using ::testing::ElementsAre;

Cover greedy(const Graph& graph) {
  absl::StatusOr<Cover> cover = cover_greedy(graph, test_machine());
  EXPECT_TRUE(cover.ok()) << cover.status();
  return cover.ok() ? *cover : Cover();
}

Cover one_per_op(const Graph& graph) {
  absl::StatusOr<Cover> cover = cover_one_per_op(graph, test_machine());
  EXPECT_TRUE(cover.ok()) << cover.status();
  return cover.ok() ? *cover : Cover();
}

std::vector<std::string> classes(const Graph& graph, const Cover& cover) {
  std::vector<std::string> names;
  for (const Group& group : cover.groups)
    names.emplace_back(name_of(analyze(extract(graph, group), test_machine())->cls));
  return names;
}

// Builds a model like BERT: `layers` transformer layers over `t` tokens, with `h` heads of `d` features.
Graph transformer(int layers, int64_t t, int64_t h, int64_t d) {
  Builder b;
  const int64_t e = h * d;
  NodeId x = b.input("x", DType::f32, {t, e});
  const NodeId mask = b.input("mask", DType::f32, {t});
  const auto linear = [&](NodeId in, int64_t k, int64_t n, const std::string& name) {
    const NodeId product = b.contract(in, b.input(name + ".w", DType::f32, {k, n}), "mk,kn->mn");
    return b.add(product, b.broadcast_to(b.input(name + ".b", DType::f32, {n}), {t, n}));
  };
  const auto heads = [&](NodeId in, std::vector<int64_t> perm) { return b.transpose(b.reshape(in, {t, h, d}), perm); };
  const auto norm = [&](NodeId in, const std::string& name) {
    const NodeId mean =
        b.mul(b.reduce_keep(Op::reduce_sum, in, {1}), b.constant_like(1.0 / static_cast<double>(e), in));
    const NodeId centred = b.sub(in, mean);
    const NodeId square = b.reduce(Op::reduce_sum, b.mul(centred, centred), {1});
    const NodeId scale = b.elementwise(Op::rsqrt, {b.add(square, b.constant_like(1e-5, square))});
    const NodeId normal = b.mul(centred, b.broadcast(scale, {t, e}, {0}));
    const NodeId gain = b.broadcast_to(b.input(name + ".g", DType::f32, {e}), {t, e});
    return b.add(b.mul(normal, gain), b.broadcast_to(b.input(name + ".s", DType::f32, {e}), {t, e}));
  };
  for (int layer = 0; layer < layers; ++layer) {
    const std::string p = cat("l", layer);
    const NodeId q = heads(linear(x, e, e, p + "q"), {1, 0, 2}), k = heads(linear(x, e, e, p + "k"), {1, 2, 0}),
                 v = heads(linear(x, e, e, p + "v"), {1, 0, 2});
    NodeId s = b.contract(q, k, "bmk,bkn->bmn");
    s = b.mul(s, b.constant_like(0.125, s));
    s = b.add(s, b.broadcast(mask, {h, t, t}, {2}));
    s = b.elementwise(Op::exp, {b.sub(s, b.reduce_keep(Op::reduce_max, s, {2}))});
    s = b.div(s, b.reduce_keep(Op::reduce_sum, s, {2}));
    const NodeId context = b.reshape(b.transpose(b.contract(s, v, "bmk,bkn->bmn"), {1, 0, 2}), {t, e});
    x = norm(b.add(linear(context, e, e, p + "o"), x), p + "n1");
    NodeId up = linear(x, e, 4 * e, p + "up");
    up = b.mul(up, b.elementwise(Op::erf, {up}));
    x = norm(b.add(linear(up, 4 * e, e, p + "down"), x), p + "n2");
  }
  b.output("y", x);
  return *b.finish();
}

TEST(Cover, TransformerLayer) {
  const Graph graph = transformer(1, 6, 2, 4);
  const Cover cover = greedy(graph);
  EXPECT_EQ(check_cover(graph, cover), "");
  EXPECT_EQ(check_cover(graph, one_per_op(graph)), "");
  EXPECT_EQ(cover.groups.size(), 11u);
  std::vector<std::string> names = classes(graph, cover);
  EXPECT_EQ(std::count(names.begin(), names.end(), "contract"), 8);
  EXPECT_EQ(std::count(names.begin(), names.end(), "rows"), 3);
  EXPECT_GT(one_per_op(graph).groups.size(), 35u);
}

TEST(Cover, ContractionsAloneLikeCallsOfALibrary) {
  const Graph graph = transformer(1, 6, 2, 4);
  const Cover cover = cover_greedy(graph, test_machine(), {.contractions_alone = true}).value();
  EXPECT_EQ(check_cover(graph, cover), "");
  int contractions = 0;
  for (const Group& group : cover.groups) {
    const Graph part = extract(graph, group);
    const bool contracts =
        std::any_of(part.nodes.begin(), part.nodes.end(), [](const Node& node) { return node.op == Op::contract; });
    contractions += contracts ? 1 : 0;
    for (const Node& node : part.nodes)
      EXPECT_FALSE(contracts && class_of(node.op) == OpClass::kElementwise) << print(part);
  }
  EXPECT_EQ(contractions, 8);
  // Besides the eight groups with a contraction there are seven: one each for q, k and v with their biases, one
  // softmax, two residual sums with norms, and the epilogue of the up-projection.
  EXPECT_EQ(cover.groups.size(), 8u + 7u);
}

TEST(Cover, EqualLayersShareKeys) {
  const Graph graph = transformer(4, 6, 2, 4);
  std::set<std::string> keys;
  const Cover cover = greedy(graph);
  for (const Group& group : cover.groups) keys.insert(graph_hash(extract(graph, group)));
  EXPECT_EQ(cover.groups.size(), 44u);
  // There are 8 distinct kernels: one for q, k and v, one for both norms, and one each for scores, softmax, context,
  // o, up- and down-projection.
  EXPECT_EQ(keys.size(), 8u);
}

TEST(Cover, SoftmaxIsOneKernelAndMovesEachByteOnce) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[64,10]
    %1 = reduce_max %0 axes=[1] : f32[64]
    %2 = broadcast %1 dims=[0] : f32[64,10]
    %3 = sub %0 %2 : f32[64,10]
    %4 = exp %3 : f32[64,10]
    %5 = reduce_sum %4 axes=[1] : f32[64]
    %6 = broadcast %5 dims=[0] : f32[64,10]
    %7 = div %4 %6 : f32[64,10]
    output "y" %7
  })");
  const Cover cover = greedy(graph);
  ASSERT_EQ(cover.groups.size(), 1u);
  EXPECT_THAT(cover.groups[0].reads, ElementsAre(0));
  EXPECT_THAT(cover.groups[0].stores, ElementsAre(7));
  EXPECT_EQ(bytes_moved(extract(graph, cover.groups[0])), 2 * 64 * 10 * 4);
  EXPECT_EQ(one_per_op(graph).groups.size(), 5u);
}

TEST(Cover, WhatIsCutOrLookedUpCountsAsFarAsItIsRead) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "stack" : f32[12,64,10]
    %1 = slice %0 starts=[3,0,0] steps=[1,1,1] : f32[1,64,10]
    %2 = slice %0 starts=[7,0,0] steps=[1,1,1] : f32[1,64,10]
    %3 = exp %2 : f32[1,64,10]
    %4 = add %1 %3 : f32[1,64,10]
    output "y" %4
  })");
  const Cover cover = greedy(graph);
  ASSERT_EQ(cover.groups.size(), 1u);
  EXPECT_EQ(bytes_moved(graph, cover.groups[0]), 3 * 64 * 10 * 4);
  EXPECT_EQ(bytes_moved(extract(graph, cover.groups[0])), 3 * 64 * 10 * 4);
  EXPECT_EQ(bytes_moved(graph_of(R"(graph {
    %0 = input "words" : f32[30000,8]
    %1 = input "which" : i64[5,8]
    %2 = take_along %0 %1 axis=[0] : f32[5,8]
    %3 = reduce_sum %2 axes=[0] : f32[8]
    output "y" %3
  })")),
            5 * 8 * 4 + 5 * 8 * 8 + 8 * 4);
}

TEST(Cover, ExpensiveWorkIsNotRepeatedAndCheapWorkIs) {
  const auto text = [](std::string_view op) {
    return cat(R"(graph {
    %0 = input "x" : f32[64,32]
    %1 = input "b" : f32[32]
    %2 = )",
               op, R"( %1 : f32[32]
    %3 = broadcast %2 dims=[1] : f32[64,32]
    %4 = add %0 %3 : f32[64,32]
    output "y" %4
  })");
  };
  EXPECT_EQ(greedy(graph_of(text("neg"))).groups.size(), 1u);
  EXPECT_EQ(greedy(graph_of(text("exp"))).groups.size(), 2u);
}

// An i8 weight is dequantised in the kernel that reads it. An f32 weight is scaled by a kernel of its own, only once.
TEST(Cover, WorkThatWidensAWeightIsRepeated) {
  for (const DType dtype : {DType::i8, DType::f32}) {
    Builder b;
    const Shape shape = {64, 96};
    NodeId w = b.input("w", dtype, shape);
    if (dtype != DType::f32) w = b.cast(w, DType::f32);
    const NodeId zero = b.broadcast_to(b.cast(b.input("zero", DType::i8, {96}), DType::f32), shape);
    const NodeId scale = b.broadcast_to(b.input("scale", DType::f32, {96}), shape);
    b.output("y", b.contract(b.input("x", DType::f32, {32, 64}), b.mul(b.sub(w, zero), scale), "mk,kn->mn"));
    const Graph graph = b.finish().value();
    EXPECT_EQ(greedy(graph).groups.size(), dtype == DType::i8 ? 1u : 2u) << name_of(dtype);
  }
}

// A triangular mask of a factor is applied inside the product's kernel, which skips the masked half. A mask that
// removes only a few products is applied by a kernel of its own.
TEST(Cover, MasksThatLeaveOutProductsAreInTheirKernel) {
  for (const int64_t above : {0, 90}) {
    Builder b;
    const Shape shape = {3, 96, 96};
    const NodeId apart = b.sub(b.iota(DType::i64, shape, 2), b.iota(DType::i64, shape, 1));
    const NodeId inside = b.elementwise(Op::le, {apart, b.constant_like(static_cast<double>(above), apart)});
    const NodeId x = b.input("x", DType::f32, shape);
    const NodeId masked = b.elementwise(Op::select, {inside, x, b.constant_like(0, x)});
    b.output("y", b.contract(masked, b.input("w", DType::f32, {96, 64}), "bmk,kn->bmn"));
    const Graph graph = b.finish().value();
    for (const Graph& form : {graph, *simplify(graph)}) EXPECT_EQ(greedy(form).groups.size(), above == 0 ? 1u : 2u);
  }
}

TEST(Cover, PathsThatRejoinDoNotMakeACycle) {
  // %2 sums the columns of %1, and must be complete before %6 is computed. So it cannot be in the kernel that computes
  // the rows of %1 and %6.
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[16,32]
    %1 = tanh %0 : f32[16,32]
    %2 = reduce_sum %1 axes=[0] : f32[32]
    %3 = input "w" : f32[32,32]
    %4 = broadcast %2 dims=[1] : f32[16,32]
    %5 = contract %1 %3 "mk,kn->mn" : f32[16,32]
    %6 = add %5 %4 : f32[16,32]
    output "y" %6
  })");
  EXPECT_EQ(check_cover(graph, greedy(graph)), "");
}

TEST(Cover, OutputsThatAreViewsInputsAndConstants) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[4,6]
    %1 = transpose %0 perm=[1,0] : f32[6,4]
    %2 = exp %0 : f32[4,6]
    %3 = transpose %2 perm=[1,0] : f32[6,4]
    %4 = slice %2 starts=[0,2] steps=[1,1] : f32[4,2]
    %5 = constant 3 : f32[2]
    %6 = iota axis=[0] : f32[5]
    output "x" %0
    output "xt" %1
    output "et" %3
    output "es" %4
    output "c" %5
    output "i" %6
  })");
  for (const Cover& cover : {greedy(graph), one_per_op(graph)}) EXPECT_EQ(check_cover(graph, cover), "");
}

TEST(Cover, AViewThatNobodyCanAbsorbIsAKernel) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[4,6]
    %1 = input "y" : f32[4,6]
    %2 = transpose %0 perm=[1,0] : f32[6,4]
    %3 = reshape %2 : f32[4,6]
    %4 = add %3 %1 : f32[4,6]
    output "o" %4
  })");
  const Cover cover = one_per_op(graph);
  EXPECT_EQ(check_cover(graph, cover), "");
  EXPECT_EQ(cover.groups.size(), 2u);
  EXPECT_EQ(check_cover(graph, greedy(graph)), "");
}

// %2 is not stored transposed, although its only direct reader is the transpose %3: the kernel of %6 could not also
// read it through %4 and %5, which undo the transpose and split the axes differently.
TEST(Cover, AStoredViewLeavesItsReadersKernels) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[8,6]
    %1 = iota axis=[0] : i64[8,6]
    %2 = take_along %0 %1 axis=[0] : f32[8,6]
    %3 = transpose %2 perm=[1,0] : f32[6,8]
    %4 = transpose %3 perm=[1,0] : f32[8,6]
    %5 = reshape %4 : f32[6,8]
    %6 = add %3 %5 : f32[6,8]
    output "y" %6
  })");
  EXPECT_EQ(check_cover(graph, one_per_op(graph)), "");
}

TEST(Cover, PadsAndConcatsOfInputsNeedNoKernel) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[4]
    %1 = input "y" : f32[3]
    %2 = pad %0 low=[1] high=[1] value=7 : f32[6]
    %3 = concat %2 %1 axis=[0] : f32[9]
    %4 = exp %3 : f32[9]
    output "o" %4
  })");
  EXPECT_EQ(one_per_op(graph).groups.size(), 1u);
}

// A computed value that is padded or concatenated is stored first. The kernel that reads it applies the padding or
// concatenation.
TEST(Cover, PadsAndConcatsOfComputedValuesCut) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[4]
    %1 = exp %0 : f32[4]
    %2 = pad %1 low=[1] high=[1] value=7 : f32[6]
    %3 = tanh %0 : f32[4]
    %4 = concat %2 %3 axis=[0] : f32[10]
    %5 = exp %4 : f32[10]
    output "o" %5
  })");
  EXPECT_EQ(check_cover(graph, greedy(graph)), "");
  EXPECT_EQ(greedy(graph).groups.size(), 3u);
}

// In rotary embedding, the halves of each row are exchanged and one is negated. After simplification, no intermediate
// is stored.
TEST(Cover, RotaryEmbeddingIsOneKernel) {
  const Graph graph = graph_of(R"(graph {
    %0 = input "x" : f32[8,32,16]
    %1 = input "cos" : f32[32,16]
    %2 = input "sin" : f32[32,16]
    %3 = slice %0 starts=[0,0,8] steps=[1,1,1] : f32[8,32,8]
    %4 = neg %3 : f32[8,32,8]
    %5 = slice %0 starts=[0,0,0] steps=[1,1,1] : f32[8,32,8]
    %6 = concat %4 %5 axis=[2] : f32[8,32,16]
    %7 = broadcast %1 dims=[1,2] : f32[8,32,16]
    %8 = mul %0 %7 : f32[8,32,16]
    %9 = broadcast %2 dims=[1,2] : f32[8,32,16]
    %10 = mul %6 %9 : f32[8,32,16]
    %11 = add %8 %10 : f32[8,32,16]
    output "y" %11
  })");
  EXPECT_EQ(greedy(graph).groups.size(), 2u);
  EXPECT_EQ(greedy(*simplify(graph)).groups.size(), 1u);
}

TEST(Cover, RandomGraphs) {
  size_t single = 0, fused = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const Graph graph = random_domain_graph(seed, 4 + static_cast<int>(seed % 20));
    const Cover one = one_per_op(graph), best = greedy(graph);
    ASSERT_EQ(check_cover(graph, one), "") << "one per op, seed " << seed << "\n" << print(graph);
    ASSERT_EQ(check_cover(graph, best), "") << "greedy, seed " << seed << "\n" << print(graph);
    ASSERT_EQ(best.groups, greedy(graph).groups) << "seed " << seed;
    single += one.groups.size();
    fused += best.groups.size();
  }
  std::printf("groups: one per op %zu, greedy %zu\n", single, fused);
  EXPECT_LT(fused, single);
}

TEST(Cover, FiveThousandNodes) {
  const Graph graph = transformer(54, 8, 2, 4);
  ASSERT_GT(graph.nodes.size(), 4500u);
  EXPECT_EQ(greedy(graph).groups.size(), 54u * 11);
  Builder chain;
  NodeId x = chain.input("x", DType::f32, {64, 8});
  for (int i = 0; i < 5000; ++i) x = chain.elementwise(i % 3 ? Op::neg : Op::tanh, {x});
  chain.output("y", x);
  EXPECT_LE(greedy(*chain.finish()).groups.size(), 200u);
}

}  // namespace
}  // namespace wl

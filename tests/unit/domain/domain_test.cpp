#include "compiler/domain/domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

using ::testing::ElementsAre;

Domain domain_of(std::string_view text) {
  const Graph graph = graph_of(text);
  absl::StatusOr<Domain> domain = analyze(graph, test_machine());
  EXPECT_TRUE(domain.ok()) << domain.status() << "\n" << text;
  if (!domain.ok()) return {};
  EXPECT_EQ(check_domain(graph, *domain), "") << text << domain->text();
  return *domain;
}

std::vector<int64_t> extents(const Domain& domain) {
  std::vector<int64_t> result;
  for (const Atom& atom : domain.atoms) result.push_back(atom.extent);
  return result;
}

TEST(Domain, ElementwiseCollapsesToOneAtom) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[4,8,16]
    %1 = input "y" : f32[4,8,16]
    %2 = add %0 %1 : f32[4,8,16]
    output "o" %2
  })");
  EXPECT_EQ(d.cls, LoopClass::kMap);
  EXPECT_THAT(extents(d), ElementsAre(512));
  EXPECT_EQ(d.vector, 0);
  EXPECT_EQ(d.second, -1);
  EXPECT_THAT(d.parallel, ElementsAre(0));
}

TEST(Domain, BiasKeepsTheRowApart) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[4,8,16]
    %1 = input "b" : f32[16]
    %2 = broadcast %1 dims=[2] : f32[4,8,16]
    %3 = add %0 %2 : f32[4,8,16]
    output "o" %3
  })");
  EXPECT_THAT(extents(d), ElementsAre(32, 16));
  EXPECT_EQ(d.vector, 1);
  EXPECT_THAT(d.operands[3][1].access.strides, ElementsAre(0, 1));
}

constexpr std::string_view kSoftmax = R"(graph {
    %0 = input "x" : f32[6,10]
    %1 = reduce_max %0 axes=[1] : f32[6]
    %2 = broadcast %1 dims=[0] : f32[6,10]
    %3 = sub %0 %2 : f32[6,10]
    %4 = exp %3 : f32[6,10]
    %5 = reduce_sum %4 axes=[1] : f32[6]
    %6 = broadcast %5 dims=[0] : f32[6,10]
    %7 = div %4 %6 : f32[6,10]
    output "y" %7
  })";

TEST(Domain, SoftmaxIsRows) {
  const Domain d = domain_of(kSoftmax);
  EXPECT_EQ(d.cls, LoopClass::kRows);
  EXPECT_THAT(extents(d), ElementsAre(6, 10));
  EXPECT_THAT(d.parallel, ElementsAre(0));
  EXPECT_THAT(d.reduced, ElementsAre(1));
  EXPECT_EQ(d.vector, 1);
  EXPECT_THAT(d.varies[1], ElementsAre(0));
  EXPECT_THAT(d.varies[4], ElementsAre(0, 1));
  EXPECT_EQ(d.operands[7][1].source, 5);
}

TEST(Domain, LogSoftmaxWithGatheredLabel) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[6,10]
    %1 = input "label" : i64[6,1] uniform(0,10)
    %2 = reduce_max %0 axes=[1] : f32[6]
    %3 = broadcast %2 dims=[0] : f32[6,10]
    %4 = sub %0 %3 : f32[6,10]
    %5 = exp %4 : f32[6,10]
    %6 = reduce_sum %5 axes=[1] : f32[6]
    %7 = log %6 : f32[6]
    %8 = take_along %0 %1 axis=[1] : f32[6,1]
    %9 = reshape %8 : f32[6]
    %10 = sub %9 %2 : f32[6]
    %11 = sub %10 %7 : f32[6]
    output "y" %11
  })");
  EXPECT_EQ(d.cls, LoopClass::kRows);
  EXPECT_THAT(extents(d), ElementsAre(6, 10));
  EXPECT_EQ(d.operands[8][0].gather_stride, 1);
  EXPECT_EQ(d.operands[8][0].gather_extent, 10);
  EXPECT_THAT(d.operands[8][0].access.strides, ElementsAre(10, 0));
  EXPECT_THAT(d.varies[8], ElementsAre(0));
}

TEST(Domain, LayerNormWithResidualScaleAndShift) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[3,4,8]
    %1 = input "r" : f32[3,4,8]
    %2 = input "g" : f32[8]
    %3 = input "b" : f32[8]
    %4 = add %0 %1 : f32[3,4,8]
    %5 = reduce_sum %4 axes=[2] : f32[3,4]
    %6 = constant 0.125 : f32[3,4]
    %7 = mul %5 %6 : f32[3,4]
    %8 = broadcast %7 dims=[0,1] : f32[3,4,8]
    %9 = sub %4 %8 : f32[3,4,8]
    %10 = mul %9 %9 : f32[3,4,8]
    %11 = reduce_sum %10 axes=[2] : f32[3,4]
    %12 = rsqrt %11 : f32[3,4]
    %13 = broadcast %12 dims=[0,1] : f32[3,4,8]
    %14 = mul %9 %13 : f32[3,4,8]
    %15 = broadcast %2 dims=[2] : f32[3,4,8]
    %16 = mul %14 %15 : f32[3,4,8]
    %17 = broadcast %3 dims=[2] : f32[3,4,8]
    %18 = add %16 %17 : f32[3,4,8]
    output "y" %18
    output "sum" %4
    output "mean" %7
  })");
  EXPECT_EQ(d.cls, LoopClass::kRows);
  EXPECT_THAT(extents(d), ElementsAre(12, 8));
  ASSERT_EQ(d.stores.size(), 3u);
  EXPECT_THAT(d.stores[2].access.strides, ElementsAre(1, 0));
  EXPECT_EQ(d.operands[7][1].source, 6);
}

TEST(Domain, GroupNormSplitsChannels) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[2,12,5,5]
    %1 = input "g" : f32[12]
    %2 = reshape %0 : f32[2,3,100]
    %3 = reduce_sum %2 axes=[2] : f32[2,3]
    %4 = broadcast %3 dims=[0,1] : f32[2,3,100]
    %5 = sub %2 %4 : f32[2,3,100]
    %6 = reshape %5 : f32[2,12,5,5]
    %7 = broadcast %1 dims=[1] : f32[2,12,5,5]
    %8 = mul %6 %7 : f32[2,12,5,5]
    output "y" %8
  })");
  EXPECT_EQ(d.cls, LoopClass::kRows);
  EXPECT_THAT(extents(d), ElementsAre(2, 3, 4, 25));
  EXPECT_THAT(d.parallel, ElementsAre(0, 1));
  EXPECT_THAT(d.reduced, ElementsAre(2, 3));
  EXPECT_THAT(d.operands[8][1].access.strides, ElementsAre(0, 4, 1, 0));
}

TEST(Domain, ColumnSum) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[6,4,8]
    %1 = reduce_sum %0 axes=[0] : f32[4,8]
    output "y" %1
  })");
  EXPECT_EQ(d.cls, LoopClass::kColumns);
  EXPECT_THAT(extents(d), ElementsAre(32, 6));
  EXPECT_EQ(d.vector, 0);
  EXPECT_THAT(d.reduced, ElementsAre(1));
}

TEST(Domain, TransposeAdd) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[4,8]
    %1 = input "y" : f32[8,4]
    %2 = transpose %1 perm=[1,0] : f32[4,8]
    %3 = add %0 %2 : f32[4,8]
    output "o" %3
  })");
  EXPECT_EQ(d.cls, LoopClass::kMap);
  EXPECT_EQ(d.vector, 1);
  EXPECT_EQ(d.second, 0);
}

TEST(Domain, AttentionScoresReadHeadsAsAccesses) {
  const Domain d = domain_of(R"(graph {
    %0 = input "q" : f32[10,12]
    %1 = input "k" : f32[10,12]
    %2 = input "mask" : f32[10]
    %3 = reshape %0 : f32[10,3,4]
    %4 = transpose %3 perm=[1,0,2] : f32[3,10,4]
    %5 = reshape %1 : f32[10,3,4]
    %6 = transpose %5 perm=[1,2,0] : f32[3,4,10]
    %7 = contract %4 %6 "bmk,bkn->bmn" : f32[3,10,10]
    %8 = constant 0.5 : f32[3,10,10]
    %9 = mul %7 %8 : f32[3,10,10]
    %10 = broadcast %2 dims=[2] : f32[3,10,10]
    %11 = add %9 %10 : f32[3,10,10]
    output "s" %11
  })");
  EXPECT_EQ(d.cls, LoopClass::kContract);
  EXPECT_THAT(extents(d), ElementsAre(3, 10, 10, 4));
  EXPECT_THAT(d.batch, ElementsAre(0));
  EXPECT_THAT(d.m, ElementsAre(1));
  EXPECT_THAT(d.n, ElementsAre(2));
  EXPECT_THAT(d.reduced, ElementsAre(3));
  EXPECT_EQ(d.contract, 7);
  EXPECT_EQ(d.vector, 2);
  EXPECT_THAT(d.operands[7][0].access.strides, ElementsAre(4, 12, 0, 1));
  EXPECT_THAT(d.operands[7][1].access.strides, ElementsAre(4, 0, 12, 1));
}

TEST(Domain, ContextIsStoredTransposed) {
  const Domain d = domain_of(R"(graph {
    %0 = input "p" : f32[3,10,10]
    %1 = input "v" : f32[10,12]
    %2 = reshape %1 : f32[10,3,4]
    %3 = transpose %2 perm=[1,0,2] : f32[3,10,4]
    %4 = contract %0 %3 "bmk,bkn->bmn" : f32[3,10,4]
    %5 = transpose %4 perm=[1,0,2] : f32[10,3,4]
    %6 = reshape %5 : f32[10,12]
    output "c" %6
  })");
  EXPECT_EQ(d.cls, LoopClass::kContract);
  EXPECT_EQ(d.stores[0].source, 4);
  EXPECT_THAT(d.stores[0].access.strides, ElementsAre(4, 12, 1, 0));
}

TEST(Domain, GemmWithBiasAndGelu) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[1,6,8]
    %1 = input "w" : f32[8,10]
    %2 = input "b" : f32[10]
    %3 = exp %0 : f32[1,6,8]
    %4 = contract %3 %1 "bmk,kn->bmn" : f32[1,6,10]
    %5 = broadcast %2 dims=[2] : f32[1,6,10]
    %6 = add %4 %5 : f32[1,6,10]
    %7 = erf %6 : f32[1,6,10]
    %8 = mul %6 %7 : f32[1,6,10]
    output "y" %8
  })");
  EXPECT_EQ(d.cls, LoopClass::kContract);
  EXPECT_THAT(extents(d), ElementsAre(6, 10, 8));
  EXPECT_TRUE(d.batch.empty());
  EXPECT_THAT(d.varies[3], ElementsAre(0, 2));
}

// A contraction without rows or without columns is analysed as a reduction of products, whose loops follow the matrix's
// order in memory.
TEST(Domain, MatrixTimesVectorIsAReduction) {
  const auto product = [](std::string_view matrix, std::string_view einsum) {
    return domain_of(cat(R"(graph {
      %0 = input "w" : f32[)",
                         matrix, R"(]
      %1 = input "x" : f32[200]
      %2 = contract %0 %1 ")",
                         einsum, R"(" : f32[100]
      output "y" %2
    })"));
  };
  const Domain rows = product("100,200", "nk,k->n");
  EXPECT_EQ(rows.cls, LoopClass::kRows);
  EXPECT_THAT(rows.parallel, ElementsAre(0));
  EXPECT_THAT(rows.reduced, ElementsAre(1));
  EXPECT_EQ(rows.contract, -1);
  EXPECT_EQ(product("200,100", "kn,k->n").cls, LoopClass::kColumns);
}

TEST(Domain, WindowOfEachChannelIsColumns) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[5,9,21]
    %1 = input "w" : f32[5,3,3]
    %2 = window %0 axes=[1,2] params=[3,1,1,3,1,1] : f32[5,7,19,3,3]
    %3 = contract %2 %1 "cpqhi,chi->cpq" : f32[5,7,19]
    output "y" %3
  })");
  EXPECT_EQ(d.cls, LoopClass::kColumns);
  EXPECT_THAT(extents(d), ElementsAre(5, 7, 19, 3, 3));
  EXPECT_EQ(d.vector, 2);
}

// If the result's rows are short, the vectorised axis is the result's row or the window's row, whichever is longer.
// A convolution of each of 16 channels, with biases.
Domain windows(int64_t side, int64_t taps, int64_t stride, int64_t out) {
  const std::string image = cat(side, ",", side), to = cat(out, ",", out), weights = cat(taps, ",", taps);
  const std::string params = cat(taps, ",", stride, ",1");
  return domain_of(cat("graph {\n%0 = input \"x\" : f32[16,", image, "]\n%1 = input \"w\" : f32[16,", weights,
                       "]\n%2 = input \"b\" : f32[16]\n%3 = window %0 axes=[1,2] params=[", params, ",", params,
                       "] : f32[16,", to, ",", weights, "]\n%4 = contract %3 %1 \"cpqhi,chi->cpq\" : f32[16,", to,
                       "]\n%5 = broadcast %2 dims=[0] : f32[16,", to, "]\n%6 = add %4 %5 : f32[16,", to,
                       "]\noutput \"y\" %6\n}"));
}

TEST(Domain, VectorsOfShortWindowsAreTheLongerOfResultAndWindow) {
  EXPECT_EQ(windows(17, 5, 2, 7).cls, LoopClass::kColumns);
  EXPECT_EQ(windows(7, 3, 1, 5).cls, LoopClass::kColumns);
  EXPECT_EQ(windows(7, 6, 1, 2).cls, LoopClass::kRows);
}

TEST(Domain, VectorsDoNotLieAlongChannelsForTheirBiasesAlone) {
  for (const Domain& d : {windows(9, 3, 1, 7), windows(15, 3, 2, 7)}) {
    EXPECT_EQ(d.cls, LoopClass::kColumns);
    ASSERT_GE(d.vector, 0);
    EXPECT_EQ(d.atoms[d.vector].extent, 7);
  }
}

TEST(Domain, SlicesOfOneInput) {
  const Domain d = domain_of(R"(graph {
    %0 = input "qkv" : f32[6,12]
    %1 = slice %0 starts=[0,0] steps=[1,1] : f32[6,4]
    %2 = slice %0 starts=[0,4] steps=[1,1] : f32[6,4]
    %3 = slice %0 starts=[5,11] steps=[-1,-1] : f32[6,4]
    %4 = fma %1 %2 %3 : f32[6,4]
    output "y" %4
  })");
  EXPECT_THAT(extents(d), ElementsAre(6, 4));
  EXPECT_EQ(d.operands[4][1].access.offset, 4);
  EXPECT_EQ(d.operands[4][2].access.offset, 71);
  EXPECT_THAT(d.operands[4][2].access.strides, ElementsAre(-12, -1));
}

TEST(Domain, WindowedSum) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[3,9]
    %1 = window %0 axes=[1] params=[3,2,1] : f32[3,4,3]
    %2 = reduce_sum %1 axes=[2] : f32[3,4]
    output "y" %2
  })");
  EXPECT_THAT(extents(d), ElementsAre(3, 4, 3));
  EXPECT_THAT(d.operands[2][0].access.strides, ElementsAre(9, 2, 1));
}

TEST(Domain, IotaIsAnAffineValue) {
  const Domain d = domain_of(R"(graph {
    %0 = iota axis=[1] : f32[6,4]
    %1 = input "x" : f32[6,4]
    %2 = slice %0 starts=[0,3] steps=[1,-1] : f32[6,4]
    %3 = mul %1 %2 : f32[6,4]
    output "y" %3
  })");
  EXPECT_EQ(d.operands[3][1].source, 0);
  EXPECT_EQ(d.operands[3][1].access.offset, 3);
  EXPECT_THAT(d.operands[3][1].access.strides, ElementsAre(0, -1));
}

TEST(Domain, ViewOfAnInputIsACopy) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[4,6]
    %1 = transpose %0 perm=[1,0] : f32[6,4]
    output "y" %1
  })");
  EXPECT_EQ(d.cls, LoopClass::kMap);
  EXPECT_EQ(d.stores[0].source, -1);
  EXPECT_EQ(d.stores[0].copy.input, 0);
  EXPECT_EQ(d.vector, 1);
  EXPECT_EQ(d.second, 0);
}

TEST(Domain, ScalarGroupHasNoAtoms) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[]
    %1 = input "y" : f32[1,1]
    %2 = reshape %1 : f32[]
    %3 = add %0 %2 : f32[]
    output "y" %3
  })");
  EXPECT_EQ(d.cls, LoopClass::kMap);
  EXPECT_TRUE(d.atoms.empty());
  EXPECT_EQ(d.vector, -1);
}

TEST(Domain, ReductionToAScalar) {
  const Domain d = domain_of(R"(graph {
    %0 = input "x" : f32[6,4]
    %1 = reduce_sum %0 axes=[0,1] : f32[]
    output "y" %1
  })");
  EXPECT_EQ(d.cls, LoopClass::kRows);
  EXPECT_THAT(extents(d), ElementsAre(24));
  EXPECT_TRUE(d.parallel.empty());
}

TEST(Domain, ZeroSizes) {
  const Domain nothing = domain_of(R"(graph {
    %0 = input "x" : f32[0,4]
    %1 = exp %0 : f32[0,4]
    output "y" %1
  })");
  EXPECT_EQ(nothing.cls, LoopClass::kMap);
  EXPECT_THAT(extents(nothing), ElementsAre(0));
  const Domain identity = domain_of(R"(graph {
    %0 = input "x" : f32[4,0,3]
    %1 = reshape %0 : f32[4,0]
    %2 = exp %1 : f32[4,0]
    %3 = reduce_sum %2 axes=[1] : f32[4]
    output "y" %3
  })");
  EXPECT_THAT(extents(identity), ElementsAre(4, 0));
  EXPECT_THAT(identity.reduced, ElementsAre(1));
}

}  // namespace
}  // namespace wl

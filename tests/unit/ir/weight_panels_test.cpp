// Weights that are folded into panels: the order of their elements, and which weights are left as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"
#include "tests/unit/ir/folding.h"

namespace wl {
namespace {

using ::testing::ElementsAre;
using testing::expect_same_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPanels;
using testing::names_of;
using ::testing::UnorderedElementsAre;

// A product of x and w, given by its einsum and the extent of each letter, and the folding of w into panels.
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
  struct Product {
    const char *einsum, *reads;
    int weight;
    Shape panels;
  };
  const std::map<char, int64_t> extents = {{'m', 3}, {'k', 5}, {'l', 2}, {'n', 128}, {'o', 4}};
  for (const Product& one :
       {Product{"mk,nk->mn", "mk,akn->man", 1, {2, 5, 64}}, Product{"mk,kn->mn", "mk,akn->man", 1, {2, 5, 64}},
        Product{"nk,mk->mn", "akn,mk->man", 0, {2, 5, 64}}, Product{"mkl,nlk->mn", "mkl,akln->man", 1, {2, 5, 2, 64}},
        Product{"mk,nok->omn", "mk,oakn->oman", 1, {4, 2, 5, 64}}, Product{"mk,nk->nm", "mk,akn->anm", 1, {2, 5, 64}},
        Product{"kmol,nkl->nmo", "kmol,akln->anmo", 1, {2, 5, 2, 64}}}) {
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
  const NodeId x = b.input("x", DType::f32, {3, 5}), w = b.input("w", DType::f32, {5, 48});
  b.output("y", b.contract(x, w, "mk,kn->mn"));
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
                             "mk,pk->pm",     // few columns, which are not the result's last axis
                             "mk,kn->mn"})    // a weight that already is one panel
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

// Folds the weights of a product with %9 : f32[128,40], which `lines` compute from a weight %1 of narrow elements.
// Expects that the folding keeps the values.
WeightFolding folded_narrow(const std::string& dtype, const std::string& lines, const std::string& more = "") {
  const Graph graph =
      *parse(cat("graph {\n  %0 = input \"x\" : f32[3,40]\n  %1 = input \"w\" : ", dtype,
                 "[128,40]\n  %2 = input \"scale\" : f32[128]\n  %3 = input \"zero\" : i8[128]\n", lines,
                 "  %10 = contract %0 %9 \"mk,nk->mn\" : f32[3,128]\n", more, "  output \"y\" %10\n}\n"));
  const WeightFolding folding = fold_weights(graph, {"w", "scale", "zero"}, kPanels).value();
  expect_same_values(graph, folding, 7);
  return folding;
}

TEST(WeightPanels, NarrowElementsStayNarrow) {
  const std::string cast = "  %9 = cast %1 : f32[128,40]\n";
  for (const char* dtype : {"f16", "bf16", "i8"}) {
    const WeightFolding folding = folded_narrow(dtype, cast);
    ASSERT_THAT(names_of(folding), ElementsAre("w:panels"));
    const std::string bytes(static_cast<size_t>(folding.folded[0].from.bytes(0)), 'x');
    EXPECT_TRUE(write_moved(folding.folded[0], bytes, std::string(bytes.size(), ' ').data()))
        << "its elements are moved and nothing else";
    EXPECT_THAT(print(folding.graph), HasSubstr(cat("\"w:panels\" : ", dtype, "[2,40,64]")));
    EXPECT_THAT(print(folding.graph), HasSubstr("\"mk,akn->man\""));
  }
}

// A weight of narrow elements is not stored as f32: it is dequantised in every run, even if f32 would take less than
// twice the memory.
TEST(WeightPanels, ScalesAndZeroPointsAreReadBesideNarrowElements) {
  for (const char* dtype : {"f16", "i8"}) {
    const WeightFolding folding = folded_narrow(dtype,
                                                "  %4 = cast %1 : f32[128,40]\n  %5 = cast %3 : f32[128]\n"
                                                "  %6 = broadcast %5 dims=[0] : f32[128,40]\n"
                                                "  %7 = sub %4 %6 : f32[128,40]\n"
                                                "  %8 = broadcast %2 dims=[0] : f32[128,40]\n"
                                                "  %9 = mul %7 %8 : f32[128,40]\n");
    EXPECT_THAT(names_of(folding), ElementsAre("w:panels"));
    EXPECT_THAT(folding.weights, UnorderedElementsAre("w:panels", "scale", "zero"));
  }
}

// Views of a weight after its conversion to f32 become views of the narrow weight and of its scales.
TEST(WeightPanels, NarrowElementsAreMovedAsTheWideOnesAre) {
  const Graph graph = *parse(R"(graph {
  %0 = input "x" : f32[3,40]
  %1 = input "w" : i8[40,2,64]
  %2 = input "scale" : f32[40,2]
  %3 = cast %1 : f32[40,2,64]
  %4 = broadcast %2 dims=[0,1] : f32[40,2,64]
  %5 = mul %3 %4 : f32[40,2,64]
  %6 = transpose %5 perm=[1,2,0] : f32[2,64,40]
  %7 = reshape %6 : f32[128,40]
  %8 = contract %0 %7 "mk,nk->mn" : f32[3,128]
  output "y" %8
})");
  const WeightFolding folding = fold_weights(graph, {"w", "scale"}, kPanels).value();
  EXPECT_THAT(print(folding.graph), HasSubstr("\"w:panels\" : i8[2,40,64]"));
  expect_same_values(graph, folding, 7);
}

TEST(WeightPanels, NarrowElementsKeepTheirOrderWhereTheyAreReadOtherwise) {
  const std::string cast = "  %9 = cast %1 : f32[128,40]\n";
  EXPECT_THAT(names_of(folded_narrow("f16", cast, "  output \"u\" %9\n")), IsEmpty());
  EXPECT_THAT(names_of(folded_narrow("f16", cast, "  output \"u\" %1\n")), IsEmpty());
  const std::string costly = "  %4 = cast %1 : f32[128,40]\n  %9 = exp %4 : f32[128,40]\n";
  EXPECT_THAT(names_of(folded_narrow("f16", costly)), IsEmpty()) << "work that is repeated is little";
}

// A scale for each column is not multiplied into a weight of narrow elements, since the product would need a wide
// dtype.
TEST(WeightPanels, NarrowElementsTakeNoFactors) {
  const Graph graph = *parse(R"(graph {
  %0 = input "x" : f32[3,40]
  %1 = input "w" : f16[128,40]
  %2 = input "scale" : f32[128]
  %3 = cast %1 : f32[128,40]
  %4 = contract %0 %3 "mk,nk->mn" : f32[3,128]
  %5 = broadcast %2 dims=[1] : f32[3,128]
  %6 = mul %4 %5 : f32[3,128]
  output "y" %6
})");
  const WeightFolding folding = fold_weights(graph, {"w", "scale"}, kPanels).value();
  EXPECT_THAT(print(folding.graph), HasSubstr("\"w:panels\" : f16[2,40,64]"));
  EXPECT_THAT(folding.weights, UnorderedElementsAre("w:panels", "scale"));
  expect_same_values(graph, folding, 7);
}

// A weight that is padded with zeros, as in transposed convolutions, is folded if its panels have less than twice as
// many elements as the unpadded weight.
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

// A weight that is read in two orders is not put into panels, since it would have to be stored twice.
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
  EXPECT_FALSE(write_moved(folding.folded[0], std::string(64 * 5 * 4, 'x'), nullptr));
  expect_same_values(graph, folding, 7);
}

// write_moved() moves the bytes of a weight to the places of its elements in the oracle, for any size of element.
TEST(WeightPanels, BytesMoveAsTheirElementsDo) {
  for (const DType dtype : {DType::i8, DType::f16, DType::f32, DType::f64}) {
    Builder b;
    const NodeId split = b.reshape(b.input("w", dtype, {6, 35}), {2, 3, 5, 7});
    b.output("y", b.transpose(b.reshape(b.transpose(split, {3, 0, 2, 1}), {14, 15}), {1, 0}));
    const FoldedWeight weight{"y", b.finish().value()};
    std::string bytes(static_cast<size_t>(6 * 35 * size_of(dtype)), '\0');
    const auto value = [](int64_t index) { return static_cast<double>(index % 101); };
    for (int64_t i = 0; i < 6 * 35; ++i) store_element(dtype, bytes.data(), static_cast<uint64_t>(i), value(i));
    std::string moved(bytes.size(), '\0'), computed = moved;
    EXPECT_TRUE(write_moved(weight, bytes, moved.data()));
    EXPECT_TRUE(write_value(
                    weight, [&](NodeId, int64_t index) { return value(index); }, computed.data())
                    .ok());
    EXPECT_EQ(moved, computed);
    EXPECT_EQ(operand_of_moved(weight, moved).value(), bytes);
  }
}

}  // namespace
}  // namespace wl

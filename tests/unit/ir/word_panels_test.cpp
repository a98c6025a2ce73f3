// Weight folding stores a weight of narrow elements in panels of 32-bit words, and other values that depend only on
// the same weight as folded weights of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"
#include "tests/unit/ir/folding.h"

namespace wl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kPanels;
using ::testing::Not;

WeightFolding folded(const std::string& text) {
  return fold_weights(parse(text).value(), {"w"}, kPanels).value();
}

std::string product(const std::string& x, const std::string& w, const std::string& sum, int k, int rows = 3) {
  return cat("graph {\n  %0 = input \"x\" : ", x, "[", rows, ",", k, "] normal(0,1)\n  %1 = input \"w\" : ", w, "[", k,
             ",128] normal(0,1)\n  %2 = contract %0 %1 \"mk,kn->mn\" : ", sum, "[", rows,
             ",128]\n  output \"y\" %2\n}\n");
}

TEST(WordPanels, ProductsReadWords) {
  EXPECT_THAT(print(folded(product("bf16", "bf16", "bf16", 6)).graph), HasSubstr("bf16[2,3,64,2]"));
  EXPECT_THAT(print(folded(product("u8", "i8", "i32", 8)).graph), HasSubstr("i8[2,2,64,4]"));
  EXPECT_THAT(print(folded(product("i8", "u8", "i32", 8)).graph), HasSubstr("u8[2,2,64,4]"));
}

// A 32-bit word of a convolution's weight holds four neighbouring channels if four divides the number of channels.
TEST(WordPanels, ConvolutionsReadWordsOfChannels) {
  const auto convolution = [](int channels) {
    return print(
        folded(cat("graph {\n  %0 = input \"x\" : u8[", channels, ",9,9] uniform(0,255)\n  %1 = input \"w\" : i8[64,",
                   channels, ",3,3] uniform(-128,127)\n  %2 = window %0 axes=[1,2] params=[3,1,1,3,1,1] : u8[",
                   channels,
                   ",7,7,3,3]\n  %3 = contract %2 %1 \"khwij,nkij->nhw\" : i32[64,7,7]\n  output \"y\" %3\n}\n"))
            .graph);
  };
  EXPECT_THAT(convolution(8), HasSubstr("i8[2,3,3,64,4]"));
  EXPECT_THAT(convolution(6), HasSubstr("i8[6,3,3,64]")) << "no whole words";
}

TEST(WordPanels, OtherProductsReadPanelsOfElements) {
  EXPECT_THAT(print(folded(product("bf16", "bf16", "bf16", 5)).graph), HasSubstr("bf16[2,5,64]")) << "no whole words";
  EXPECT_THAT(print(folded(product("bf16", "bf16", "bf16", 6, 1)).graph), HasSubstr("bf16[2,6,64]")) << "one row";
  EXPECT_THAT(print(folded(product("u8", "u8", "i32", 8)).graph), HasSubstr("u8[2,8,64]")) << "nothing multiplies them";
  EXPECT_THAT(print(folded(product("f16", "f16", "f16", 8)).graph), HasSubstr("f16[2,8,64]"));
}

// The sum over the weight "w" becomes a folded weight too. So no kernel reads "w" itself, whose elements are in another
// order than those of its panels.
TEST(WordPanels, ASumThatIsFoldedKeepsNoWeightInItsOrder) {
  const WeightFolding folding = folded(R"(graph {
  %0 = input "x" : u8[3,8] uniform(0,255)
  %1 = input "w" : i8[8,128] uniform(-128,127)
  %2 = contract %0 %1 "mk,kn->mn" : i32[3,128]
  %3 = cast %1 : i32[8,128]
  %4 = reduce_sum %3 axes=[0] : i32[128]
  %5 = broadcast %4 dims=[1] : i32[3,128]
  %6 = sub %2 %5 : i32[3,128]
  output "y" %6
})");
  EXPECT_THAT(folding.weights, ElementsAre("w:panels", "w:folded"));
  EXPECT_THAT(print(folding.graph), Not(HasSubstr("reduce_sum")));
}

// A product of two operands that are converted from bytes to f32, shifted and scaled becomes a product of the bytes.
// All values in it that depend only on the weight become folded weights.
TEST(WordPanels, DequantisedProductsReadWords) {
  const WeightFolding folding = folded(R"(graph {
  %0 = input "x" : u8[3,8] uniform(0,255)
  %1 = cast %0 : f32[3,8]
  %2 = constant 7 : f32[3,8]
  %3 = sub %1 %2 : f32[3,8]
  %4 = input "w" : i8[8,128] uniform(-128,127)
  %5 = cast %4 : f32[8,128]
  %6 = constant 0.5 : f32[8,128]
  %7 = mul %5 %6 : f32[8,128]
  %8 = contract %3 %7 "mk,kn->mn" : f32[3,128]
  output "y" %8
})");
  EXPECT_THAT(folding.weights, ElementsAre("w:panels", "w:folded"));
  EXPECT_THAT(print(folding.graph), HasSubstr("i8[2,2,64,4]"));
}

}  // namespace
}  // namespace wl

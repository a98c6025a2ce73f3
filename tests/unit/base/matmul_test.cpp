// Library calls as texts: what is written is read back unchanged, and an inconsistent text is refused with its field.
#include "compiler/base/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace wl {
namespace {

using ::testing::HasSubstr;

MatmulCall example() {
  MatmulCall call;
  call.factors = DType::bf16;
  call.result = DType::f32;
  call.a = {0, 8, 24, 40, 24, 960};
  call.b = {1, 0, 16, 40, 20, 800};
  call.b_transposed = true;
  call.d = {4, 0, 24, 16, 32, 512};
  call.c = MatmulMatrix{2, 0, 24, 16, 24, 0};
  call.bias = MatmulMatrix{3, 4, 24, 1, 24, 0};
  call.function = MatmulFunction::kGeluTanh;
  call.alpha = 0.125;
  call.batch = 3;
  call.algorithm = 5;
  return call;
}

TEST(MatmulText, IsReadBackAsItWas) {
  for (int with = 0; with < 4; ++with) {
    MatmulCall call = example();
    if ((with & 1) == 0) call.c.reset();
    if ((with & 2) == 0) call.bias.reset();
    const auto read = parse_matmul(matmul_text(call));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, call);
  }
  MatmulCall call = example();
  call.factors = DType::f32;
  call.tf32 = true;
  EXPECT_EQ(parse_matmul(matmul_text(call)).value(), call);
}

TEST(MatmulText, WhatDoesNotFitIsRefusedWithItsPlace) {
  struct Case {
    void (*change)(MatmulCall& call);
    const char* says;
  };
  const Case cases[] = {
      {[](MatmulCall& c) { c.a.columns = 41; }, "a has a depth of 41, b one of 40"},
      {[](MatmulCall& c) { c.d.rows = 23; }, "d is 23 x 16, the product 24 x 16"},
      {[](MatmulCall& c) { c.c->columns = 15; }, "c has not the shape of d"},
      {[](MatmulCall& c) { c.bias->columns = 2; }, "bias is no column of d"},
      {[](MatmulCall& c) { c.d.step = 0; }, "all members of the batch have the same d"},
      {[](MatmulCall& c) { c.a.leading = 23; }, "a.leading is not between 24 and"},
      {[](MatmulCall& c) { c.b.offset = -1; }, "b.offset is not between 0 and"},
      {[](MatmulCall& c) { c.a.argument = -1; }, "a.argument is not between 0 and"},
      {[](MatmulCall& c) { c.b.rows = 0; }, "b.rows is not between 1 and"},
      {[](MatmulCall& c) { c.batch = 0; }, "it.batch is not between 1 and"},
      {[](MatmulCall& c) { c.algorithm = kMostAlgorithms; }, "it.algorithm is not between 0 and 7"},
      {[](MatmulCall& c) { c.factors = DType::i8; }, "it.factors is not f32, f16 or bf16"},
      {[](MatmulCall& c) { c.result = DType::f16; }, "it.result is not f32 or the factors' type"},
      {[](MatmulCall& c) { c.tf32 = true; }, "it.tf32 is not of factors of f32"},
      {[](MatmulCall& c) { c.alpha = std::numeric_limits<double>::infinity(); }, "it.alpha is not a finite number"},
  };
  for (const Case& one : cases) {
    MatmulCall call = example();
    one.change(call);
    const auto read = parse_matmul(matmul_text(call));
    ASSERT_FALSE(read.ok()) << one.says;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(one.says));
  }
  for (const char* const text : {"", "{", "[]", "7", "{\"matmul\":2}", "{\"matmul\":1,\"factors\":7}", "null"})
    EXPECT_FALSE(parse_matmul(text).ok()) << text;
  EXPECT_FALSE(parse_matmul(std::string(1 << 20, '[')).ok());
}

// A text with changed bytes is either refused, or read as a call whose own text is read back unchanged.
TEST(MatmulText, ChangedBytesAreRefusedOrRead) {
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same texts in every run
  const std::string text = matmul_text(example());
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = text;
    for (unsigned k = random() % 3 + 1; k > 0; --k)
      changed[random() % changed.size()] = "0123456789-{}[]\",:e."[random() % 20];
    const auto call = parse_matmul(changed);
    if (!call.ok()) continue;
    ++read;
    EXPECT_EQ(*parse_matmul(matmul_text(*call)), *call);
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace wl

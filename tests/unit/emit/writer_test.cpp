#include "compiler/emit/writer.h"

#include <gtest/gtest.h>

namespace wl {
namespace {

TEST(FillFields, ReplacesEveryField) {
  const auto name = [](std::string_view field) { return cat("<", field, ">"); };
  EXPECT_EQ(fill_fields("wl_fence()", name), "wl_fence()");
  EXPECT_EQ(fill_fields("wl_wait<{pending}>()", name), "wl_wait<<pending>>()");
  EXPECT_EQ(fill_fields("wl_div({0}, wl_add({0}, {1}))", name), "wl_div(<0>, wl_add(<0>, <1>))");
}

TEST(SpellHorizontal, NamesTheReduction) {
  EXPECT_EQ(spell_horizontal(Op::add), "wl_hsum");
  EXPECT_EQ(spell_horizontal(Op::max), "wl_hmax");
  EXPECT_EQ(spell_horizontal(Op::min), "wl_hmin");
  EXPECT_EQ(spell_horizontal(Op::mul), "wl_hprod");
}

TEST(SpellBits, AddsPartsWithoutCommonBits) {
  EXPECT_EQ(spell_bits("v", {}, 0), "0");
  EXPECT_EQ(spell_bits("v", {1, 2, 4}, 0), "v");
  EXPECT_EQ(spell_bits("v", {4, 8, 1}, 32), "((v & 3)*4 + (v >> 2) + 32)");
  EXPECT_EQ(spell_bits("v", {2, 0, 1}, 0), "((v & 1)*2 + (v >> 2))");
}

TEST(SpellBits, XorsPartsWithCommonBits) {
  EXPECT_EQ(spell_bits("v", {1, 2, 1}, 0), "((v & 3) ^ (v >> 2))");
  EXPECT_EQ(spell_bits("v", {1, 2}, 6), "((v ^ 2) + 4)");
  EXPECT_EQ(spell_bits("v", {3, 8, 1}, 4), "((v & 1)*2 + ((v >> 1) & 1)*8 + ((v & 1) ^ (v >> 2)) + 4)");
}

TEST(SpellType, TellsVectorsOfOtherWidthsApart) {
  EXPECT_EQ(spell_type(DType::bf16, 8), "f32v");
  EXPECT_EQ(spell_type(DType::bf16, 8, 8), "f32v");
  EXPECT_EQ(spell_type(DType::bf16, 2, 8), "wl_v<f32, 2>");
  EXPECT_EQ(spell_type(DType::bf16, 1, 8), "f32");
  EXPECT_EQ(spell_memory(DType::bf16, 2, 8), "wl_v<u16, 2>");
  EXPECT_EQ(spell_load(DType::bf16, 2, "x", 8), "wl_from_bf16<wl_v<f32, 2>>(x)");
  EXPECT_EQ(spell_store(DType::i16, 2, "x", 8), "wl_narrow<wl_v<i16, 2>>(x)");
}

}  // namespace
}  // namespace wl

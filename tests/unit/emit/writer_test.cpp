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

}  // namespace
}  // namespace wl

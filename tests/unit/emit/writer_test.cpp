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

}  // namespace
}  // namespace wl

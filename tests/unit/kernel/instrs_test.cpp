// Conformance: the columns of every row of instrs.def are consistent.
#include "compiler/kernel/instrs.h"

#include <gtest/gtest.h>

#include <set>

namespace wl {
namespace {

TEST(Instrs, RowsAreInEnumOrderAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < instrs().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(instrs()[i].op), i);
    EXPECT_TRUE(names.insert(instrs()[i].name).second) << instrs()[i].name;
  }
}

TEST(Instrs, WhatRunsOverATileHasThatTile) {
  for (const InstrInfo& row : instrs()) {
    if (row.space == InstrSpace::kOfResult) {
      EXPECT_TRUE(row.gives_tile()) << row.name;
    }
    if (row.space == InstrSpace::kOfArgument) {
      EXPECT_TRUE(row.has(Operand::tile) || row.has(Operand::shape)) << row.name;
    }
    if (row.space == InstrSpace::kNoSpace) {
      EXPECT_EQ(row.stretch, InstrStretch::kAlone) << row.name;
      EXPECT_EQ(row.slice, SliceUse::kUntouched) << row.name;
    }
  }
}

TEST(Instrs, WhatAccessesMemoryHasASlice) {
  for (const InstrInfo& row : instrs()) {
    if (row.slice != SliceUse::kUntouched) {
      EXPECT_TRUE(row.has(Operand::slice)) << row.name;
    }
    if (row.is_async_copy() || row.is_indexed()) {
      EXPECT_TRUE(row.loads()) << row.name;
    }
    if (row.order != Order::kNoOrder) {
      EXPECT_FALSE(row.accesses_memory()) << row.name;
    }
  }
}

}  // namespace
}  // namespace wl

// Which sizes of a turn are tried for blocks that compute a reduced axis in several turns (turn_sizes.h).
#include "compiler/cover/slab/turn_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TurnSizes, LengthsDivideTheAxisOrLeaveNearlyATurn) {
  EXPECT_THAT(turn_lengths(512), ElementsAre(128, 64, 256));
  EXPECT_THAT(turn_lengths(384), ElementsAre(128, 64, 192));
  EXPECT_THAT(turn_lengths(1500), ElementsAre(125, 250));
  EXPECT_THAT(turn_lengths(197), ElementsAre(99, 50));
  EXPECT_THAT(turn_lengths(48), ElementsAre(24, 16));
  EXPECT_THAT(turn_lengths(16), IsEmpty());
  for (int64_t extent = 17; extent < 3000; ++extent)
    for (int64_t length : turn_lengths(extent)) {
      const int64_t left = extent % length;
      ASSERT_LT(length, extent);
      ASSERT_LE(length, 256);
      ASSERT_TRUE(left == 0 || length - left <= extent / length) << extent << " in turns of " << length;
    }
}

TEST(TurnSizes, RowsDivideTheirNumber) {
  EXPECT_THAT(turn_rows(512, 1), ElementsAre(64, 128, 256));
  EXPECT_THAT(turn_rows(192, 1), ElementsAre(64));
  EXPECT_THAT(turn_rows(40, 1), ElementsAre(40));
  EXPECT_THAT(turn_rows(197, 1), ElementsAre(197));
  EXPECT_THAT(turn_rows(2039, 1), IsEmpty());
  for (int64_t extent = 1; extent < 3000; ++extent)
    for (int64_t rows : turn_rows(extent, extent % 2 == 0 ? 2 : 1)) {
      ASSERT_EQ(extent % rows, 0);
      ASSERT_EQ(rows % (extent % 2 == 0 ? 2 : 1), 0);
    }
}

}  // namespace
}  // namespace wl

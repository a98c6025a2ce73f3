#include "compiler/search/budget.h"

#include <gtest/gtest.h>

namespace wl {
namespace {

TEST(Budget, MoreLaunchesAndMoreLeftSaveMore) {
  const Standing one{1, 50, {100}};
  EXPECT_DOUBLE_EQ(expected_saving({4, 50, {100}}), 4 * expected_saving(one));
  EXPECT_GT(expected_saving({1, 20, {100}}), expected_saving(one));
  EXPECT_GT(expected_saving({1, 200, {100}}), 0) << "a bound that was beaten is no bound";
  EXPECT_EQ(expected_saving({1, 50, {}}), 0);
  EXPECT_EQ(expected_saving({1, 50, {0}}), 0);
}

TEST(Budget, ChanceFollowsWhatRoundsWon) {
  EXPECT_GT(chance_of_gain({1, 0, {100, 50}}), chance_of_gain({1, 0, {100}}));
  EXPECT_LT(chance_of_gain({1, 0, {100, 100}}), chance_of_gain({1, 0, {100}}));
  EXPECT_LT(chance_of_gain({1, 0, {100, 50, 50, 50}}), chance_of_gain({1, 0, {100, 50, 50}}));
}

TEST(Budget, FirstRoundsComeFirstAndNobodyStarves) {
  EXPECT_LT(due(0, 0, 100), due(1, 100, 100));
  EXPECT_LT(due(3, 100, 100), due(2, 25, 100));
  EXPECT_DOUBLE_EQ(due(2, 25, 100), 4);
  EXPECT_LT(due(1, 0, 100), due(100, 100, 100));
}

TEST(Budget, StopsWhereRoundsStoppedWinning) {
  Standing standing{1, 50, {100}};
  int rounds = 1;
  for (; !is_spent(standing); ++rounds) standing.best_ns.push_back(100);
  EXPECT_GE(rounds, 6);
  EXPECT_LE(rounds, 12);
  standing.best_ns.push_back(90);
  EXPECT_FALSE(is_spent(standing));
  EXPECT_FALSE(is_spent({1, 50, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}})) << "nothing correct yet";
}

}  // namespace
}  // namespace wl

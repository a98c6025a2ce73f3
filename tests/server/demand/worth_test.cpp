// Which kernel is searched next follows from what programs run, what searches usually save, and what teams were given.
#include <gtest/gtest.h>

#include "server/jobs/demand.h"

namespace wl {
namespace {

constexpr double kHour = 3.6e12;  // in ns

Demand kernel(const std::string& team, const std::string& key, double hours, int64_t trials = 1) {
  return {.team = team, .key = key, .ns_per_day = hours * kHour, .best_ns = 1000, .default_ns = 1000, .trials = trials};
}

TEST(Worth, AGuessUntilKernelsWereSearched) {
  EXPECT_DOUBLE_EQ(usual_saving({kernel("", "a", 1)}), 0.3);
  Demand searched = kernel("", "b", 1, 32);
  searched.best_ns = 400;
  EXPECT_DOUBLE_EQ(usual_saving({kernel("", "a", 1), searched}), 0.6);
  searched.default_ns = 0;
  EXPECT_DOUBLE_EQ(usual_saving({searched}), 0.3) << "nothing is known of its default schedule";
}

Demand searched(const std::string& key, double hours, int64_t trials, double saved) {
  Demand out = kernel("", key, hours, trials);
  out.best_ns = out.default_ns * (1 - saved);
  return out;
}

TEST(Worth, ASearchFindsLessTheMoreTrialsThereWere) {
  EXPECT_DOUBLE_EQ(expected_share(kernel("", "a", 1), 0.5), 0.5);
  EXPECT_DOUBLE_EQ(expected_share(searched("a", 1, 9, 0.4), 0.5), 0.2) << "half of what it saved so far";
  EXPECT_LT(expected_share(searched("a", 1, 127, 0.4), 0.5), 0.05);
  EXPECT_EQ(expected_share(searched("a", 1, 128, 0.4), 0.5), 0) << "there is an end";
  EXPECT_EQ(expected_share(searched("a", 1, 9, 0), 0.5), 0) << "eight trials found nothing";
  EXPECT_EQ(next_trials(kernel("", "a", 1)), 8);
  EXPECT_EQ(next_trials(kernel("", "a", 1, 32)), 128);
  EXPECT_EQ(next_trials(kernel("", "a", 1, INT64_MAX)), 128);
  EXPECT_EQ(next_trials(kernel("", "a", 1, INT64_MIN)), 8);
}

TEST(Worth, NoKernelBecomesFasterThanItsBound) {
  Demand near = kernel("", "a", 1);
  near.bound_ns = 950;
  EXPECT_NEAR(expected_share(near, 0.5), 0.05, 1e-9);
  near.bound_ns = 2000;
  EXPECT_EQ(expected_share(near, 0.5), 0) << "the bound is wrong, so nothing is expected";
}

TEST(Worth, TheMostTimeIsSearchedFirst) {
  EXPECT_EQ(worth_most({kernel("", "a", 1), kernel("", "b", 3), kernel("", "c", 2)}, {}, {}), 1u);
  EXPECT_EQ(worth_most({kernel("", "a", 1), searched("b", 3, 128, 0.4)}, {}, {}), 0u) << "the other was searched";
  EXPECT_EQ(worth_most({}, {}, {}), std::nullopt);
}

TEST(Worth, ASearchHasToSaveInAMonthWhatItTakes) {
  const double second = 1.0 / 3600;
  // Seven trials take 3.5 s. A search saves 3 tenths of the time, so 2.7 s or 4.5 s in a month.
  EXPECT_EQ(worth_most({kernel("", "a", 0.3 * second)}, {}, {}), std::nullopt);
  EXPECT_EQ(worth_most({kernel("", "a", 0.5 * second)}, {}, {}), 0u);
}

// A team whose programs say that they run for years gets no more than its turns.
TEST(Worth, TeamsTakeTurnsByWhatTheyWereGiven) {
  const std::vector<Demand> kernels = {kernel("liar", "a", 1e6), kernel("liar", "b", 1e6), kernel("honest", "c", 1)};
  EXPECT_EQ(worth_most(kernels, {{"liar", 31}}, {}), 2u);
  EXPECT_EQ(worth_most(kernels, {{"liar", 31}, {"honest", 62}}, {}), 0u);
  EXPECT_EQ(worth_most(kernels, {{"liar", 31}, {"honest", 62}}, {{"honest", 4}}), 2u) << "by weight";
  EXPECT_EQ(worth_most(kernels, {}, {{"liar", 0}}), 2u) << "its trials of the day are used up";
}

}  // namespace
}  // namespace wl

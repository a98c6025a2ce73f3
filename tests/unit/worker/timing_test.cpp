#include "worker/drivers/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace wl {
namespace {

// Simulates the kernels of a measurement, each of which has a slot number. A call of slot i takes `costs[i]` ns, and
// a run of several calls up to `noise` ns more.
struct SimulatedSlots {
  std::vector<int64_t> costs;
  std::vector<int> order;  // slot numbers of all runs, in order
  int64_t calls = 0;
  TimedRun run(int64_t noise = 0) {
    return [this, noise](int slot, int64_t n) {
      order.push_back(slot);
      calls += n;
      return n * costs[static_cast<size_t>(slot)] + (noise ? calls * 7919 % noise : 0);
    };
  }
};

TEST(Timing, SteadyKernelStopsAsSoonAsItsMedianIsKnown) {
  SimulatedSlots slots{{1'000'000}, {}};
  Recipe recipe;
  const std::vector<Samples> result = time_slots(recipe, 1, slots.run());
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].samples_ns.size(), 7u);
  EXPECT_EQ(median_of(result[0].samples_ns), 1'000'000);
  EXPECT_FALSE(result[0].hopeless);
}

TEST(Timing, NoisyKernelGoesOnUntilItsBudgetIsSpent) {
  SimulatedSlots slots{{1'000'000}, {}};
  Recipe recipe;
  recipe.budget_ns = 50'000'000;
  const std::vector<Samples> result = time_slots(recipe, 1, slots.run(500'000));
  EXPECT_GT(result[0].samples_ns.size(), 30u);
  EXPECT_LE(result[0].samples_ns.size(), 50u);
  recipe.max_repeats = 9;
  EXPECT_EQ(time_slots(recipe, 1, slots.run(500'000))[0].samples_ns.size(), 9u);
}

TEST(Timing, SlowKernelStillGetsItsMinimum) {
  SimulatedSlots slots{{1'000'000'000}, {}};
  Recipe recipe;
  recipe.min_repeats = 5;
  EXPECT_EQ(time_slots(recipe, 1, slots.run())[0].samples_ns.size(), 5u);
  EXPECT_EQ(slots.calls, 5);  // no call is a warm-up, because the check of a candidate has already run its kernel
}

TEST(Timing, FastKernelIsAveragedOverALoop) {
  SimulatedSlots slots{{100}, {}};
  Recipe recipe;
  const std::vector<Samples> result = time_slots(recipe, 1, slots.run());
  EXPECT_EQ(result[0].samples_ns[0], 100);
  EXPECT_GE(slots.calls, 7 * 60'000 / 100);  // each sample takes at least 60 us
}

// Returns a clock that returns `values` one after another, and then the last one again and again.
std::function<int()> clock_of(std::vector<int> values) {
  return [values, at = size_t{0}]() mutable { return values[at + 1 < values.size() ? at++ : at]; };
}

TEST(Timing, SamplesAtAnotherClockAreTakenOnceMore) {
  SimulatedSlots slots{{1'000'000}, {}};
  Recipe recipe;
  recipe.min_repeats = recipe.max_repeats = 8;
  const size_t plain = (time_slots(recipe, 1, slots.run()), slots.order.size());
  // The third sample was taken at a lower clock rate, so it is repeated once. If the rate is back to normal then, the
  // new sample counts; if it is still low, the new sample stays marked with its rate and is not repeated again.
  for (const bool back : {true, false}) {
    slots.order.clear();
    const Samples samples = time_slots(recipe, 1, slots.run(),
                                       clock_of({2000, 2010, 990, 2000, 1990, 2000, 2000, 2000, back ? 2000 : 991}))[0];
    EXPECT_EQ(slots.order.size(), plain + 1);
    EXPECT_EQ(samples.samples_ns.size(), 8u);
    EXPECT_EQ(samples.clocks_mhz, (std::vector<int>{2000, 2010, back ? 2000 : 991, 2000, 1990, 2000, 2000, 2000}));
    EXPECT_EQ(median_clock(samples), 2000);
    EXPECT_EQ(clock_moved(samples), back ? 0 : 1);
  }
}

TEST(Timing, AClockWithoutAUsualValueIsNotWaitedFor) {
  SimulatedSlots slots{{1'000'000}, {}};
  Recipe recipe;
  recipe.min_repeats = recipe.max_repeats = 8;
  const size_t plain = (time_slots(recipe, 1, slots.run()), slots.order.size());
  slots.order.clear();
  const Samples samples =
      time_slots(recipe, 1, slots.run(), clock_of({2000, 1000, 2000, 1000, 2000, 1000, 2000, 2000}))[0];
  EXPECT_EQ(slots.order.size(), plain);
  EXPECT_EQ(clock_moved(samples), 3);
}

TEST(Timing, HopelessStopsAfterTwo) {
  SimulatedSlots slots{{2'100'000}, {}};
  Recipe recipe;
  recipe.best_ns = 1'000'000;
  const std::vector<Samples> result = time_slots(recipe, 1, slots.run());
  EXPECT_TRUE(result[0].hopeless);
  EXPECT_EQ(result[0].samples_ns.size(), 2u);
}

TEST(Timing, TheNearerToTheBestTheMoreSamplesUntilACandidateHasLost) {
  Recipe recipe;
  recipe.best_ns = 1'000'000;
  const struct {
    int64_t cost;
    size_t samples;
  } kRows[] = {{1'900'000, 2}, {1'400'000, 3}, {1'200'000, 5}, {1'050'000, 7}};
  for (const auto& row : kRows) {
    SimulatedSlots slots{{row.cost}, {}};
    const Samples samples = time_slots(recipe, 1, slots.run())[0];
    EXPECT_FALSE(samples.hopeless);
    EXPECT_EQ(samples.samples_ns.size(), row.samples) << row.cost;
  }
}

// Other load of the machine can only make samples longer. So timing does not end early for a candidate of which one
// sample is as fast as the best known kernel.
TEST(Timing, OneUndisturbedSampleKeepsACandidate) {
  Recipe recipe;
  recipe.best_ns = 3'000'000;
  for (size_t undisturbed = 0; undisturbed < 2; ++undisturbed) {
    size_t calls = 0;
    const TimedRun run = [&](int, int64_t n) { return n * (calls++ == undisturbed ? 3'000'000 : 9'000'000); };
    const Samples samples = time_slots(recipe, 1, run)[0];
    EXPECT_FALSE(samples.hopeless);
    EXPECT_GE(samples.samples_ns.size(), 7u);
  }
}

TEST(Timing, RoundsAreFairAndAlternate) {
  SimulatedSlots slots{{1'000'000, 2'000'000, 3'000'000}, {}};
  Recipe recipe;
  recipe.interleave = true;
  // Cold runs are not preceded by untimed calls, so the last 12 entries of `order` are the samples of the four rounds.
  recipe.cold = true;
  recipe.min_repeats = 4;
  recipe.budget_ns = 1;
  recipe.best_ns = 1;  // 1 ns, so that all candidates are hopelessly slow, which does not end the timing of a promotion
  const std::vector<Samples> result = time_slots(recipe, 3, slots.run());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result[i].samples_ns.size(), 4u);
    EXPECT_EQ(result[i].samples_ns[0], static_cast<int64_t>(i + 1) * 1'000'000);
    EXPECT_FALSE(result[i].hopeless);
  }
  const std::vector<int> rounds(slots.order.end() - 12, slots.order.end());
  EXPECT_EQ(rounds, (std::vector<int>{0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0}));
}

TEST(Timing, LongKernelsAreNotWarmedUpInEveryRound) {
  SimulatedSlots slots{{200'000'000, 1'000'000}, {}};
  Recipe recipe;
  recipe.interleave = true;
  const std::vector<Samples> result = time_slots(recipe, 2, slots.run());
  ASSERT_EQ(result[0].samples_ns.size(), 5u);
  ASSERT_EQ(result[1].samples_ns.size(), 5u);
  EXPECT_EQ(std::count(slots.order.begin(), slots.order.end(), 0), 1 + 5);  // one warm-up call and five samples
  EXPECT_GE(std::count(slots.order.begin(), slots.order.end(), 1), 1 + 2 * 5);
}

TEST(Timing, WhoIsBehindAfterEightRoundsGetsNoMoreWhereTheRecipeSaysSo) {
  SimulatedSlots slots{{1'000'000, 1'300'000, 1'150'000}, {}};
  Recipe recipe;
  recipe.interleave = true;
  recipe.budget_ns = 30'000'000;
  const auto rounds = [&](double lost_factor) {
    recipe.lost_factor = lost_factor;
    std::vector<size_t> counts;
    for (const Samples& samples : time_slots(recipe, 3, slots.run())) counts.push_back(samples.samples_ns.size());
    return counts;
  };
  const std::vector<size_t> all = rounds(0), some = rounds(1.2), alone = rounds(0.5);
  EXPECT_EQ(all, std::vector<size_t>(3, all[0]));
  EXPECT_GT(all[0], 20u);
  EXPECT_EQ(some, (std::vector<size_t>{some[0], 8, some[0]}));
  EXPECT_GT(some[0], 20u);
  EXPECT_EQ(alone, (std::vector<size_t>{alone[0], 8, 8})) << "the best stays, whatever a coordinator says";
}

TEST(Timing, ThreeRoundsAreEnoughForVeryLongKernels) {
  SimulatedSlots slots{{900'000'000, 1'100'000'000}, {}};
  Recipe recipe;
  recipe.interleave = true;
  EXPECT_EQ(time_slots(recipe, 2, slots.run())[1].samples_ns.size(), 3u);
  recipe.min_repeats = 2;
  EXPECT_EQ(time_slots(recipe, 2, slots.run())[1].samples_ns.size(), 2u);
  // Chains have a larger budget of time, but the timing of very long ones ends after three rounds as well.
  recipe.min_repeats = 5;
  recipe.budget_ns = 30'000'000'000;
  EXPECT_EQ(time_slots(recipe, 2, slots.run())[1].samples_ns.size(), 3u);
}

TEST(Timing, MedianIsKnownByOrderStatistics) {
  EXPECT_FALSE(median_is_known({100, 100, 100}, 0.01));
  EXPECT_TRUE(median_is_known(std::vector<int64_t>(7, 100), 0.01));
  std::vector<int64_t> outlier(20, 1000);
  outlier[3] = 9000;
  EXPECT_TRUE(median_is_known(outlier, 0.01));
  std::vector<int64_t> spread;
  for (int i = 0; i < 20; ++i) spread.push_back(1000 + 20 * i);
  EXPECT_FALSE(median_is_known(spread, 0.01));
}

}  // namespace
}  // namespace wl

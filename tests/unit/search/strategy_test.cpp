// Conformance: every row of strategies.def keeps the promises of strategy.h, on spaces made up for the purpose.
#include "compiler/search/strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace wl {
namespace {

Space small_space() {
  Space space;
  space.prefix = "plan 1";
  space.axes = {{"a", {1, 2, 4}}, {"b", {0, 1}}, {"c", {7, 8, 9}}};
  space.legal_point = [](const Point& point) { return point[1] == 1 || point[2] == 0; };
  space.seeds = {{1, 1, 0}, {0, 0, 0}};
  return space;
}

Space large_space() {
  Space space;
  space.prefix = "plan 1";
  for (int i = 0; i < 8; ++i) space.axes.push_back({cat("x", i), {0, 1, 2, 3, 4}});
  space.legal_point = [](const Point& point) { return point[0] != 0 || point[1] == 0; };
  space.seeds = {Point(8, 0), Point(8, 2)};
  return space;
}

uint64_t hash_of(const Point& point, uint64_t seed) {
  uint64_t h = seed * 0x9e3779b97f4a7c15u + 1;
  for (int value : point) h = (h ^ static_cast<uint64_t>(value + 1)) * 0xbf58476d1ce4e5b9u, h ^= h >> 29;
  return h;
}

// Simulates a trial. Each axis of the space has its own best value, independent of the other axes. One trial in ten
// fails, and times vary by 3 %.
Observed measure(const Point& point, uint64_t seed) {
  double ns = 100;
  for (size_t i = 0; i < point.size(); ++i)
    ns += 10.0 * std::abs(point[i] - static_cast<int>((3 * i + 1) % 5)) * static_cast<double>(1 + i % 3);
  const uint64_t h = hash_of(point, seed);
  ns *= 1 + 0.03 * (static_cast<double>(h % 2001) / 1000 - 1);
  return {point, h / 2001 % 10 != 0, ns};
}

class EveryStrategy : public testing::TestWithParam<Strategy> {};

TEST_P(EveryStrategy, ProposesDistinctLegalNewPoints) {
  for (const Space& space : {small_space(), large_space()})
    for (uint64_t seed = 0; seed < 5; ++seed) {
      std::vector<Observed> trials;
      std::set<Point> seen;
      for (int round = 0; round < 6; ++round) {
        const std::vector<Point> points = GetParam().propose(space, trials, 7, seed);
        EXPECT_LE(points.size(), 7u);
        for (const Point& point : points) {
          EXPECT_TRUE(space.is_legal(point)) << space.text(point);
          EXPECT_TRUE(seen.insert(point).second) << "again: " << space.text(point);
          trials.push_back(measure(point, seed));
        }
      }
    }
}

TEST_P(EveryStrategy, DependsOnNothingButItsArguments) {
  const Space space = large_space();
  std::vector<Observed> trials;
  for (int round = 0; round < 5; ++round) {
    const std::vector<Point> once = GetParam().propose(space, trials, 6, 42);
    EXPECT_EQ(once, GetParam().propose(space, trials, 6, 42));
    EXPECT_EQ(once.size(), 6u);
    for (const Point& point : once) trials.push_back(measure(point, 1));
  }
}

TEST_P(EveryStrategy, ExhaustsASmallSpace) {
  const Space space = small_space();
  ASSERT_EQ(space.count(), 12u);
  std::vector<Observed> trials;
  while (true) {
    const std::vector<Point> points = GetParam().propose(space, trials, 5, 3);
    if (points.empty()) break;
    for (const Point& point : points) trials.push_back(measure(point, 2));
    ASSERT_LE(trials.size(), 12u);
  }
  EXPECT_EQ(trials.size(), 12u);
}

TEST_P(EveryStrategy, WorksWhenEveryTrialFailed) {
  const Space space = large_space();
  std::vector<Observed> trials;
  for (int round = 0; round < 4; ++round)
    for (const Point& point : GetParam().propose(space, trials, 8, 5)) trials.push_back({point, false, 0});
  EXPECT_EQ(trials.size(), 32u);
}

double best_after(const Strategy& strategy, const Space& space, int budget, uint64_t seed) {
  std::vector<Observed> trials;
  double best = 1e9;
  while (static_cast<int>(trials.size()) < budget)
    for (const Point& point : strategy.propose(space, trials, 8, seed)) {
      trials.push_back(measure(point, seed));
      if (trials.back().correct) best = std::min(best, trials.back().ns);
    }
  return best;
}

TEST_P(EveryStrategy, GuidedOnesBeatRandom) {
  const Space space = large_space();
  double mine = 0, random = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    mine += best_after(GetParam(), space, 96, seed) / 20;
    random += best_after(**strategy_named("random"), space, 96, seed) / 20;
  }
  std::printf("%-10s best of 96 trials: %.1f (random %.1f, optimum 100)\n", std::string(GetParam().name).c_str(), mine,
              random);
  const bool guided = GetParam().name != "random" && GetParam().name != "exhaustive";
  if (guided) {
    EXPECT_LT(mine, random);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, testing::ValuesIn(strategies().begin(), strategies().end()),
                         [](const auto& row) { return std::string(row.param.name); });

// Simulates a trial on a register file that holds a tile of 32 elements. The first three axes give the size of the
// tile; elements beyond 32 are spilled. Up to 32 elements, larger tiles are faster; trials of even larger ones fail.
Observed judged(const Point& point, bool facts) {
  const int64_t tile = int64_t{1} << (point[0] + point[1] + point[2]);
  Observed trial{point, true, 0};
  if (facts) trial.code = {.registers = 255, .spill_bytes = std::max<int64_t>(0, (tile - 32) * 16)};
  trial.correct = tile <= 32;
  trial.ns = 1e4 / static_cast<double>(tile) + 10 * std::abs(point[3] - 2);
  return trial;
}

int64_t rejected_of(const Strategy& strategy, const Space& space, bool facts, uint64_t seed) {
  std::vector<Observed> trials;
  while (trials.size() < 96)
    for (const Point& point : strategy.propose(space, trials, 8, seed)) trials.push_back(judged(point, facts));
  return std::count_if(trials.begin(), trials.end(), [](const Observed& trial) { return !trial.correct; });
}

TEST(Strategies, LearnFromSpillsWhatAFlatFailureDoesNotSay) {
  const Space space = large_space();
  for (const char* name : {"tpe_local", "portfolio"}) {
    int64_t with = 0, without = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      with += rejected_of(**strategy_named(name), space, true, seed);
      without += rejected_of(**strategy_named(name), space, false, seed);
    }
    std::printf("%-10s rejected of 96: %.1f with facts, %.1f without\n", name, static_cast<double>(with) / 20,
                static_cast<double>(without) / 20);
    EXPECT_LT(with, without) << name;
  }
}

TEST(Strategies, AskTheSeedsFirst) {
  const Space space = large_space();
  const std::vector<Point> points = (*strategy_named("portfolio"))->propose(space, {}, 4, 1);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0], space.seeds[0]);
  EXPECT_EQ(points[1], space.seeds[1]);
}

// With a model that predicts times up to a constant factor, faster points are found earlier than without a model.
TEST(Strategies, AskWhatAModelLikes) {
  const Space without = large_space();
  Space space = large_space();
  space.expected_log_ns = [](const Point& point) { return std::log(measure(point, 0).ns) - 5; };
  const auto& ranked = **strategy_named("ranked");
  double first = 0, blind = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    first += best_after(ranked, space, 8, seed) / 10;
    blind += best_after(ranked, without, 8, seed) / 10;
    EXPECT_LT(best_after(**strategy_named("bayes"), space, 16, seed), 200);
  }
  EXPECT_LT(first, 0.9 * blind);
  EXPECT_LT(best_after(ranked, space, 96, 1), best_after(ranked, without, 96, 1));
  // The model changes the order in which points are proposed.
  const std::vector<Point> points = ranked.propose(space, {}, 4, 1);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_NE(points, ranked.propose(without, {}, 4, 1));
}

TEST(Strategies, UnknownNameListsTheRows) {
  std::string known;
  for (const Strategy& row : strategies()) append(&known, known.empty() ? "" : ", ", row.name);
  EXPECT_EQ(strategy_named("annealing").status().message(), cat("unknown strategy \"annealing\"; known: ", known));
}

}  // namespace
}  // namespace wl

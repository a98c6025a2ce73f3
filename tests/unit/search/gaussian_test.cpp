#include "compiler/search/gaussian.h"

#include <gtest/gtest.h>

namespace wl {
namespace {

Space grid() {
  Space space;
  space.prefix = "plan 1";
  for (const char* name : {"a", "b", "c"}) space.axes.push_back({name, {1, 2, 4, 8, 16}});
  return space;
}

// The time depends only on axis a, whose best value is 4.
double ns_of(const Point& point) {
  return 100 + 40 * std::abs(point[0] - 2);
}

std::vector<Observed> some_trials() {
  std::vector<Observed> trials;
  for (int i = 0; i < 20; ++i) {
    const Point point = {i % 5, i / 5, (i * 3 + i / 5) % 5};
    if (point[0] != 2) trials.push_back({point, true, ns_of(point)});
  }
  return trials;
}

TEST(Gaussian, FindsTheAxisThatMatters) {
  const std::vector<Point> points = {{1, 4, 0}, {0, 4, 0}, {4, 4, 0}, {4, 0, 3}};
  const Gaussian process(grid(), some_trials());
  const Gaussian::Belief belief(process, points);
  EXPECT_LT(belief.mean(0), belief.mean(1));
  EXPECT_LT(belief.mean(1), belief.mean(2) + 0.5);
  EXPECT_NEAR(belief.mean(2), belief.mean(3), 0.5);
}

TEST(Gaussian, AnAssumedTrialTakesItsGainWithIt) {
  const std::vector<Point> points = {{2, 4, 0}, {2, 3, 0}, {4, 0, 3}};
  const Gaussian process(grid(), some_trials());
  Gaussian::Belief belief(process, points);
  const double before = belief.improvement(0), neighbour = belief.improvement(1);
  EXPECT_GT(before, belief.improvement(2));
  belief.assume(0);
  EXPECT_LT(belief.improvement(0), 0.9 * before);
  EXPECT_LT(belief.improvement(1), neighbour);
}

TEST(Gaussian, OneTrialAndOnlyFailuresBesideAreEnough) {
  std::vector<Observed> trials = {{{0, 0, 0}, true, 50}, {{1, 0, 0}, false, 0}, {{2, 0, 0}, false, 0}};
  const std::vector<Point> points = {{0, 1, 0}, {1, 1, 0}};
  const Gaussian process(grid(), trials);
  const Gaussian::Belief belief(process, points);
  EXPECT_GT(belief.improvement(0), 0);
  EXPECT_LE(belief.mean(0), belief.mean(1));
}

}  // namespace
}  // namespace wl

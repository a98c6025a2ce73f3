// Whatever a space calls legal can be lowered: tests all seeds and a sample of points, over random groups.
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/plan/plan_testing.h"

namespace wl {
namespace {

TEST(SpaceLower, LegalPointsLower) {
  int lowered = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Graph graph = random_plan_graph(seed);
    const absl::StatusOr<Domain> domain = analyze(graph, test_machine());
    if (!domain.ok()) continue;
    const absl::StatusOr<Space> space = space_of(graph, *domain, test_machine());
    ASSERT_TRUE(space.ok()) << space.status();
    std::vector<Point> points = space->seeds;
    uint64_t number = 0;
    const uint64_t every = std::max<uint64_t>(1, space->count() / 6);
    space->enumerate([&](const Point& point) {
      if (number++ % every == seed % every) points.push_back(point);
      return true;
    });
    for (const Point& point : points) {
      const absl::StatusOr<Kernel> kernel = lower(graph, *domain, space->schedule(point), test_machine());
      ASSERT_TRUE(kernel.ok()) << kernel.status() << "\nseed " << seed << " " << space->text(point) << "\n"
                               << print(graph);
      ++lowered;
    }
  }
  EXPECT_GT(lowered, 1000);
}

}  // namespace
}  // namespace wl

// Whatever a space calls legal can be lowered: tests all seeds and a sample of points, over random groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
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

// The plan of a product's first seed, and the text of its kernel.
std::pair<std::string, std::string> product(int rows) {
  const absl::StatusOr<Graph> graph = parse(cat("graph {\n%0 = input \"a\" : f32[", rows,
                                                ",2048]\n%1 = input \"b\" : f32[64,2048,64]\n"
                                                "%2 = contract %0 %1 \"mk,nku->mnu\" : f32[",
                                                rows, ",64,64]\noutput \"y\" %2\n}"));
  const absl::StatusOr<Domain> domain = analyze(*graph, test_machine());
  const absl::StatusOr<Space> space = space_of(*graph, *domain, test_machine());
  const absl::StatusOr<Kernel> kernel = lower(*graph, *domain, space->schedule(space->seeds[0]), test_machine());
  return {space->text(space->seeds[0]), print(*kernel)};
}

TEST(SpaceLower, ALargeOperandThatIsReadInPlaceIsPrefetched) {
  const auto [plan, kernel] = product(8);
  EXPECT_THAT(plan, ::testing::HasSubstr("prefetch=64"));
  EXPECT_THAT(kernel, ::testing::HasSubstr("+ 4096]"));  // 64 rows of 64 columns ahead
  EXPECT_THAT(kernel, ::testing::HasSubstr(" level 1"));
}

}  // namespace
}  // namespace wl

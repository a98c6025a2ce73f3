// Every legal point of a space can be lowered. Tests all seeds and a sample of the other points, for random groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/domain/domain_testing.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

TEST(SpaceLower, LegalPointsLower) {
  int lowered = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Graph graph = random_domain_graph(seed);
    const absl::StatusOr<Domain> domain = analyze(graph, test_machine());
    if (!domain.ok()) continue;
    const absl::StatusOr<Space> space = space_of(graph, *domain, test_machine());
    ASSERT_TRUE(space.ok()) << space.status();
    std::vector<Point> points = space->seeds;
    uint64_t number = 0;
    const uint64_t every = std::max<uint64_t>(1, space->count() / 8);
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

using ::testing::HasSubstr;

int times(const std::string& text, std::string_view part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

struct Product {
  Graph graph;
  Domain domain;
  Space space;
  std::string kernel(const Point& point) const {
    const absl::StatusOr<Kernel> kernel = lower(graph, domain, space.schedule(point), test_machine());
    return kernel.ok() ? print(*kernel) : std::string(kernel.status().message());
  }
};

// A product of a matrix with `rows` rows and a weight in panels of 64 columns.
Product in_panels(int64_t rows, int64_t depth = 2048, int64_t panels = 64) {
  Product out{
      *parse(cat("graph {\n%0 = input \"a\" : f32[", rows, ",", depth, "]\n%1 = input \"b\" : f32[", panels, ",", depth,
                 ",64]\n%2 = contract %0 %1 \"mk,nku->mnu\" : f32[", rows, ",", panels, ",64]\noutput \"y\" %2\n}")),
      {},
      {}};
  out.domain = *analyze(out.graph, test_machine());
  out.space = *space_of(out.graph, out.domain, test_machine());
  return out;
}

TEST(SpaceLower, AWeightOfSeveralPanelsIsAlwaysPrefetched) {
  const auto ever = [](const Product& product, int64_t ahead) {
    bool found = false;
    product.space.enumerate([&](const Point& point) {
      found = found || product.space.schedule(point)[kPrefetch] == ahead;
      return !found;
    });
    return found;
  };
  const Product large = in_panels(8), shallow = in_panels(8, 64, 2);
  EXPECT_FALSE(ever(large, 0));
  EXPECT_TRUE(ever(large, 64));
  EXPECT_TRUE(ever(shallow, 0)) << "no row is so far ahead";
  EXPECT_TRUE(ever(in_panels(8, 2048, 1), 0)) << "it may be what another kernel has just stored";
  const std::string kernel = large.kernel(large.space.seeds[0]);
  // The kernel prefetches the row of the panel that lies 64 rows of 64 elements ahead.
  EXPECT_THAT(kernel, HasSubstr("+ 4096] strides [0,1] level 1"));
}

// While several row tiles are multiplied with a panel, the loop of each tile prefetches one cache line of every row of
// the next panel, or of the next block of rows, into the second-level cache. The last block of rows prefetches nothing.
TEST(SpaceLower, WhatFollowsInAWeightIsFetchedWhileTilesTakeTurns) {
  const Product many = in_panels(56);
  const auto lowered = [](const Product& product, const char* choices) {
    const absl::StatusOr<Point> point = product.space.parse(
        cat("plan 2 target=cpu:avx512 class=contract mr=14 nv=2 nc=0 pack_b=0 pack_a=0 row_tasks=1 ",
            "column_tasks=2 threads=2 compiler=gcc prefetch=64 ", choices));
    return point.ok() ? product.kernel(*point) : std::string(point.status().message());
  };
  const auto count = [](const std::string& text) {
    return std::pair(times(text, " level 1"), times(text, " level 2"));
  };
  EXPECT_EQ(count(lowered(many, "kc=0 row_tiles_outermost=0")), std::pair(1, 1)) << "the next panel";
  EXPECT_EQ(count(lowered(many, "kc=512 row_tiles_outermost=1")), std::pair(2, 1)) << "the next block";
  EXPECT_EQ(count(lowered(many, "kc=0 row_tiles_outermost=1")), std::pair(1, 0)) << "there is no next block";
  EXPECT_THAT(lowered(many, "kc=512 row_tiles_outermost=1"), HasSubstr("line#"));
  EXPECT_EQ(count(lowered(in_panels(14), "kc=512 row_tiles_outermost=1")), std::pair(2, 0)) << "one tile, two lines";
}

// On AVX2, a panel's row of 16 columns has two vectors but only one cache line, so it is prefetched once.
TEST(SpaceLower, ALineIsFetchedOnce) {
  const Graph graph = *parse(R"(graph {
  %0 = input "a" : f32[56,2048]
  %1 = input "b" : f32[256,2048,16]
  %2 = contract %0 %1 "mk,nku->mnu" : f32[56,256,16]
  output "y" %2
})");
  Machine machine;
  machine.target = *target_named("cpu:avx2");
  const Domain domain = *analyze(graph, machine);
  const Space space = *space_of(graph, domain, machine);
  const Point point = *space.parse(
      "plan 2 target=cpu:avx2 class=contract mr=6 nv=2 kc=0 nc=0 pack_b=0 pack_a=0 row_tiles_outermost=0 "
      "row_tasks=1 column_tasks=1 threads=1 compiler=gcc prefetch=64");
  absl::StatusOr<Kernel> kernel = lower(graph, domain, space.schedule(point), machine);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int64_t hints = 0;
  testing::each_of(*kernel, InstrOp::kPrefetch,
                   [&](const Instr& instr) { hints += kernel->tiles[instr.args[0]].layout.count('r'); });
  // The kernel has code for full row tiles and for the partial one. Each prefetches the row that is read 64 iterations
  // later, and a row of the next panel.
  EXPECT_EQ(hints, 2 * 2) << print(*kernel);
}

}  // namespace
}  // namespace wl

// Packed groups: every sampled plan computes its graph, and no block does work of two members.
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/cover/packing.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/pack.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/barriers.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/packed_groups.h"
#include "tests/unit/schedule/side_by_side.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

void check_packed(const char* text, const Machine& machine, uint64_t points, int* kernels) {
  const Graph group = parsed(text);
  ASSERT_FALSE(analyze(group, machine).ok());
  const auto domain = analyze_group(group, machine);
  ASSERT_TRUE(domain.ok()) << domain.status();
  ASSERT_EQ(domain->cls, LoopClass::kPacked);
  const auto space = space_of(group, *domain, machine);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<Point> chosen = space->seeds;
  uint64_t at = 0;
  space->enumerate([&](const Point& point) {
    if (at++ % (2000 / points) == 100 / points) chosen.push_back(point);
    return at < 2000;
  });
  testing::expect_meanings(group, *domain, *space, machine, chosen, kernels,
                           [&](const Kernel& kernel, const Point& point) {
                             ASSERT_EQ(kernel.is_packed(), machine.target->is_gpu());
                             testing::expect_reads_back(kernel);
                             EXPECT_EQ(*space->parse(space->text(point)), point);
                           });
}

TEST(Packed, SampledPlansMeanTheGraph) {
  int kernels = 0;
  for (const char* target : {"cpu:avx512", "cpu:avx2", "sim:cuda", "cuda:sm_80", "hip:gfx90a"})
    for (const char* text : testing::kPacked) {
      check_packed(text, machine_with(target), 8, &kernels);
      if (HasFatalFailure()) return;
    }
  check_packed(testing::kScoresAndProduct, machine_with("sim:cuda"), 8, &kernels);
  std::printf("%d kernels\n", kernels);
}

TEST(Packed, EqualPartsHaveOneSchedule) {
  const Machine machine = machine_with("sim:cuda");
  const Domain domain = pack(parsed(testing::kThreeProducts), machine).value();
  EXPECT_EQ(domain.packed->members.size(), 3u);
  EXPECT_EQ(domain.packed->kinds, 2);
  EXPECT_EQ(domain.packed->members[0].kind, domain.packed->members[1].kind);
}

TEST(Packed, PointsAreCountedWithoutAWalk) {
  for (const char* target : {"cpu:avx2", "sim:cuda"}) {
    const Machine machine = machine_with(target);
    const Graph group = parsed(testing::kTwoMaps);
    Space space = space_of(group, analyze_group(group, machine).value(), machine).value();
    const uint64_t counted = space.count(200'000);
    space.counted = nullptr;
    EXPECT_EQ(space.count(200'000), counted) << target;
  }
}

// On cuda:sm_80, the spaces of the products have millions of points, which are not counted, since that would take
// seconds.
TEST(Packed, LargeSpacesAreNotCounted) {
  const Machine machine = machine_with("cuda:sm_80");
  const std::string text = absl::StrReplaceAll(testing::kThreeProducts, {{"f32", "bf16"}, {"24", "512"}});
  const Graph group = parsed(text.c_str());
  const Space space = space_of(group, analyze_group(group, machine).value(), machine).value();
  EXPECT_EQ(space.counted(), std::nullopt);
  EXPECT_EQ(space.count_text(), "too many legal points to count");
  EXPECT_EQ(space.count(100), 100u);
}

// Walking the space part by part gives the same points as walking it as a whole.
TEST(Packed, WalksByParts) {
  const Machine machine = machine_with("sim:cuda");
  const Graph group = parsed(testing::kTwoMaps);
  Space space = space_of(group, analyze_group(group, machine).value(), machine).value();
  const auto first = [&] {
    std::vector<Point> points;
    space.enumerate([&](const Point& point) {
      points.push_back(point);
      return points.size() < 500;
    });
    return points;
  };
  const std::vector<Point> by_parts = first();
  space.parts.clear();
  EXPECT_EQ(by_parts, first());
}

TEST(Packed, WhatIsNoSetOfKernelsIsRefused) {
  const Machine machine = machine_with("sim:cuda");
  const auto why = [&](const char* text) { return std::string(pack(parsed(text), machine).status().message()); };
  EXPECT_THAT(why(R"(graph {
  %0 = input "x" : f32[8,8] normal(0,1)
  %1 = reduce_sum %0 axes=[1] : f32[8]
  %2 = broadcast %1 dims=[0] : f32[8,8]
  %3 = reduce_sum %2 axes=[0] : f32[8]
  output "y" %1
  output "z" %3
})"),
              ::testing::HasSubstr("the group is connected"));
}

// The sections of a packed kernel use the same shared memory and no barriers separate them, because no block runs two
// sections. check_barriers() reports an error if a block runs two.
TEST(Packed, SectionsNeedNoBarriersBetweenThem) {
  const Machine machine = machine_with("sim:cuda");
  const Graph group = parsed(testing::kThreeProducts);
  const Domain domain = analyze_group(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  Kernel kernel = lower(group, domain, space.schedule(space.seeds[0]), machine).value();
  ASSERT_TRUE(kernel.is_packed());
  EXPECT_TRUE(check_barriers(kernel).ok());
  const Section section = section_of(kernel.body[1]).value();
  kernel.body[1].trips = section_trips(section.from - 1, section.to);
  EXPECT_FALSE(kernel.is_packed());
  EXPECT_FALSE(check_barriers(kernel).ok());
}

// Packs two random groups into one kernel. In half of the cases, both groups may read the same input.
TEST(Packed, RandomPairsMeanTheirGraphs) {
  const uint64_t first = testing::test_seed(20261123);
  const auto wanted = static_cast<int>(testing::scaled(400));
  int groups = 0, kernels = 0;
  for (uint64_t seed = first; groups < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = testing::side_by_side(seed);
    const Machine machine = machine_with(seed % 3 == 0 ? "sim:cuda" : seed % 3 == 1 ? "sim:hip" : "cpu:avx2");
    if (analyze(graph, machine).ok()) continue;
    const auto domain = pack(graph, machine);
    if (!domain.ok()) continue;
    ++groups;
    testing::expect_seeds_mean(graph, *domain, machine, 4, &kernels);
    if (HasFatalFailure()) return;
  }
  std::printf("%d groups, %d kernels\n", groups, kernels);
}

}  // namespace
}  // namespace wl

// Compiles and runs kernels of packed groups: those for this machine's CPU, and those for GPUs on the simulated GPU.
#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/domain/pack.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/random_group.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/packed_groups.h"
#include "tests/unit/schedule/side_by_side.h"

namespace wl {
namespace {

std::vector<Machine> machines() {
  return {testing::machine_with("cuda:sm_80"), testing::machine_with("hip:gfx90a"),
          testing::machine_named(testing::runnable_targets().back())};
}

// Adds kernels of the group at `count` points of its space; returns false if the group is not a packed group.
bool add(const Graph& group, const Machine& machine, int count, testing::CompiledChecks& checks) {
  const auto domain = analyze_group(group, machine);
  if (!domain.ok() || domain->cls != LoopClass::kPacked) return false;
  const Space space = space_of(group, *domain, machine).value();
  const int number = checks.group(group).value();
  std::vector<Point> points = testing::sample_points(space, count, 3);
  // If several points are wanted, the default point and random points are tested; if one is wanted, a random point.
  points.erase(points.begin() + (count > 1 ? 1 : 0), points.end() - std::max(1, count - 1));
  for (const Point& point : points) {
    const auto kernel = lower(group, *domain, space.schedule(point), machine);
    if (absl::IsUnimplemented(kernel.status())) continue;
    EXPECT_TRUE(kernel.ok()) << kernel.status() << print(group) << space.text(point);
    if (!kernel.ok()) return true;
    const auto source = testing::simulated(*kernel, machine);
    EXPECT_TRUE(source.ok()) << source.status() << print(group) << space.text(point);
    if (source.ok()) checks.add(number, *source, space.text(point));
  }
  return true;
}

TEST(PackedCode, MeansItsGraph) {
  testing::CompiledChecks checks("packed");
  for (const Machine& machine : machines())
    for (const char* text : testing::kPacked) EXPECT_TRUE(add(parse(text).value(), machine, 2, checks)) << text;
  EXPECT_TRUE(add(parse(testing::kScoresAndProduct).value(), machines()[0], 2, checks));
  checks.expect_right();
}

TEST(PackedCode, RandomPairsMeanTheirGraphs) {
  testing::CompiledChecks checks("packed_pairs");
  const uint64_t first = testing::test_seed(20261124);
  const auto wanted = static_cast<int>(testing::scaled(24));
  int groups = 0;
  for (uint64_t seed = first; groups < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    groups += add(testing::side_by_side(seed), machines()[seed % 3], 1, checks) ? 1 : 0;
  }
  checks.expect_right();
}

}  // namespace
}  // namespace wl

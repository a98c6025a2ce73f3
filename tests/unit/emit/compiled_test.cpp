// Every legal way to print a group computes what the group's graph says. This is the compiled counterpart of the
// interpreter's differential test, with both compilers and every row of kTargets that this machine can run.
#include "tests/unit/emit/compiled.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/ir/windows.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/dot_products.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/masked_products.h"
#include "tests/unit/schedule/narrow_products.h"

namespace wl {
namespace {

using testing::CompiledChecks;

struct Tally {
  int unimplemented = 0;
};

// Adds a group's kernels for every target: at all seeds of its space and `points` random schedules or, if `points` is
// 0, at only one schedule. If `in_part` is set and the test scale is below 1, only a part of these schedules is used.
void add_group(CompiledChecks& checks, const Graph& group, const std::vector<std::string>& targets, int points,
               Tally& tally, uint64_t seed, bool in_part = false) {
  const auto number = checks.group(group);
  ASSERT_TRUE(number.ok()) << number.status() << "\n" << print(group);
  for (const std::string& target : targets) {
    const Machine machine = testing::machine_named(target);
    const auto domain = analyze(group, machine);
    ASSERT_TRUE(domain.ok()) << domain.status() << "\n" << print(group);
    const auto space = space_of(group, *domain, machine);
    ASSERT_TRUE(space.ok()) << space.status();
    std::vector<Point> chosen = testing::sample_points(*space, std::max(1, points), seed++);
    if (points == 0) chosen = {chosen[seed % chosen.size()]};
    if (in_part) chosen = testing::sampled(chosen, seed);
    for (const Point& point : chosen) {
      const std::string plan = space->text(point);
      const auto kernel = lower(group, *domain, space->schedule(point), machine);
      const auto source = kernel.ok() ? emit(*kernel, machine) : kernel.status();
      if (absl::IsUnimplemented(source.status())) {
        if (tally.unimplemented++ == 0)
          std::printf("not printed: %s\n%s\n", source.status().ToString().c_str(), plan.c_str());
        continue;
      }
      ASSERT_TRUE(source.ok()) << source.status() << "\n" << print(group) << plan;
      checks.add(*number, *source, plan);
    }
  }
}

// Adds those groups of a random graph's cover that are not in `seen` yet.
void add_random_cover(CompiledChecks& checks, uint64_t seed, const std::string& target, int points, Tally& tally,
                      std::set<std::string>& seen) {
  SCOPED_TRACE(cat("seed ", seed));
  // Every fourth graph is large enough for several vectors, tiles and rows per block.
  const Graph graph =
      random_graph(seed, {.nodes = 14, .largest = seed % 4 == 0 ? 6000 : 200, .f32_only = seed % 3 != 0});
  const auto cover = cover_greedy(graph, testing::machine_named(target));
  ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(graph);
  for (const Group& group : cover->groups) {
    const Graph extracted = extract(graph, group);
    if (!seen.insert(graph_hash(extracted)).second) continue;
    add_group(checks, extracted, {target}, points, tally, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Compiled, SampledSchedulesOfTheClassesMeanTheGraph) {
  uint64_t seed = testing::test_seed(1);
  CompiledChecks checks("compiled_classes");
  Tally tally;
  for (const char* text : testing::kGroups) {
    const auto group = parse(text);
    ASSERT_TRUE(group.ok()) << group.status() << text;
    add_group(checks, *group, testing::runnable_targets(), 4, tally, seed += 100, true);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(tally.unimplemented, 0);
  checks.expect_right();
}

// A fifth of the convolutions have channels last. Most random schedules copy the image. If weights are in panels, half
// of these schedules use transposed tiles (docs/design/cpu-products.md).
TEST(Compiled, RandomConvolutionsMeanTheirGraphs) {
  const uint64_t first = testing::test_seed(20261126);
  const std::vector<std::string> targets = testing::runnable_targets();
  CompiledChecks checks("compiled_convolutions");
  Tally tally;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(60)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const int64_t panels = seed % 3 == 0 ? 16 + static_cast<int64_t>(seed % 7) : 0;
    const auto group = parse(testing::ConvolutionText(seed, panels, seed % 5 == 0).text());
    ASSERT_TRUE(group.ok()) << group.status();
    add_group(checks, *group, {targets[seed % targets.size()]}, 0, tally, seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(tally.unimplemented, 0);
  checks.expect_right();
}

// Transposed tiles of every height are tested, down to one pixel by one vector of filters. The last vector may be
// partial.
TEST(Compiled, TurnedTilesOfAnyHeightMeanTheirGraph) {
  CompiledChecks checks("compiled_turned");
  for (const int64_t filters : {32, 24, 77}) {
    const std::string shape = cat("f32[", filters == 32 ? 2 : 1, ",", filters);
    const std::string weights = cat("f32[", filters == 32 ? 2 : 1, ",5,3,3,", filters);
    const Graph group =
        parse(cat("graph {\n  %0 = input \"x\" : f32[5,3,13] normal(0,1)\n  %1 = input \"w\" : ", weights,
                  "] normal(0,1)\n  %2 = input \"bias\" : ", shape, R"(] normal(0,1)
  %3 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[5,5,15]
  %4 = window %3 axes=[1,2] params=[3,1,1,3,1,1] : f32[5,3,13,3,3]
  %5 = contract %4 %1 "kmoli,nkliu->numo" : )",
                  shape, ",3,13]\n  %6 = broadcast %2 dims=[0,1] : ", shape, ",3,13]\n  %7 = add %5 %6 : ", shape,
                  ",3,13]\n  output \"y\" %7\n}"))
            .value();
    const int64_t number = checks.group(group).value();
    for (const std::string& target : testing::runnable_targets()) {
      const Machine machine = testing::machine_named(target);
      const Domain domain = analyze(group, machine).value();
      const Space space = space_of(group, domain, machine).value();
      std::set<std::pair<int64_t, int64_t>> seen;
      space.enumerate([&](const Point& point) {
        const Schedule s = space.schedule(point);
        if (s[kTurnTiles] == 0 || !seen.emplace(s[kMr], s[kNv]).second) return true;
        checks.add(number, emit(lower(group, domain, s, machine).value(), machine).value(), space.text(point));
        return true;
      });
      EXPECT_GT(seen.size(), 4u) << target << " " << filters;
    }
  }
  checks.expect_right();
}

// Checks `count` random products on every target, each with `points` random schedules as in add_group().
void expect_right_products(const std::string& folder, uint64_t first, int64_t count,
                           const std::function<std::string(uint64_t seed)>& random,
                           const std::vector<std::string>& targets = testing::runnable_targets(), int points = 2) {
  CompiledChecks checks(folder);
  Tally tally;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const auto group = parse(random(seed));
    ASSERT_TRUE(group.ok()) << group.status();
    add_group(checks, *group, targets, points, tally, seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
  checks.expect_right();
}

TEST(Compiled, RandomProductsOfWordsMeanTheirGraphs) {
  expect_right_products("compiled_words", testing::test_seed(20261127), testing::scaled(60), testing::random_product);
}

TEST(Compiled, RandomProductsOfNarrowElementsMeanTheirGraphs) {
  expect_right_products("compiled_narrow", testing::test_seed(20261129), testing::scaled(40),
                        testing::random_narrow_product);
}

// The packed operand depends on its coordinates (iota), and has more vectors than the packing code unrolls.
TEST(Compiled, PackedOperandsWithPlacesAreOfAnyDepth) {
  CompiledChecks checks("compiled_places");
  Tally tally;
  const Graph group = parse(R"(graph {
  %0 = input "a" : f32[24,1200] normal(0,1)
  %1 = input "b" : f32[1200,40] normal(0,1)
  %2 = iota axis=[1] : i32[24,1200]
  %3 = iota axis=[0] : i32[24,1200]
  %4 = add %2 %3 : i32[24,1200]
  %5 = cast %4 : f32[24,1200]
  %6 = mul %0 %5 : f32[24,1200]
  %7 = contract %6 %1 "mk,kn->mn" : f32[24,40]
  output "y" %7
})")
                          .value();
  add_group(checks, group, testing::runnable_targets(), 1, tally, 1);
  EXPECT_EQ(tally.unimplemented, 0);
  checks.expect_right();
}

TEST(Compiled, RandomMaskedProductsMeanTheirGraphs) {
  expect_right_products("compiled_masked", testing::test_seed(20261130), testing::scaled(40),
                        testing::random_masked_product);
}

class CompiledFuzz : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, CompiledFuzz, ::testing::Range(0, testing::kShards));

// Only one schedule of every group is tested, since there are many graphs.
TEST_P(CompiledFuzz, CoversOfRandomGraphsMeanTheirGroups) {
  const auto [first, last] = seeds(1000, 20260201);
  const std::vector<std::string> targets = testing::runnable_targets();
  std::set<std::string> seen;
  Tally tally;
  for (uint64_t seed = first; seed < last;) {
    CompiledChecks checks("compiled_random");
    for (const uint64_t batch = std::min(last, seed + 125); seed < batch; ++seed) {
      add_random_cover(checks, seed, targets[seed % targets.size()], 0, tally, seen);
      if (HasFatalFailure()) return;
    }
    checks.expect_right();
  }
  EXPECT_EQ(tally.unimplemented, 0);
}

// Simulated targets run the text of GPU kernels with one fiber per thread, and check bounds, data races and which
// threads arrive at a barrier.
const std::vector<std::string> kSimulated = {"sim:cuda", "sim:hip"};

class SimulatedClasses : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shards, SimulatedClasses, ::testing::Range(0, testing::kShards));

TEST_P(SimulatedClasses, SampledSchedulesMeanTheGraph) {
  const uint64_t seed = testing::test_seed(3);
  CompiledChecks checks("simulated_classes");
  Tally tally;
  for (size_t i = GetParam(); i < std::size(testing::kGroups); i += testing::kShards) {
    const auto group = parse(testing::kGroups[i]);
    ASSERT_TRUE(group.ok()) << group.status() << testing::kGroups[i];
    add_group(checks, *group, kSimulated, static_cast<int>(std::max<int64_t>(4, testing::scaled(4))), tally,
              seed + 100 * (i + 1), true);
    if (HasFatalFailure()) return;
  }
  checks.expect_right();
}

TEST(Simulated, RandomContractionsMeanTheirGroups) {
  const uint64_t first = testing::test_seed(20260502);
  CompiledChecks checks("simulated_contractions");
  Tally tally;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(40)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const auto group = parse(testing::ContractionText(seed, 200'000).text());
    ASSERT_TRUE(group.ok()) << group.status();
    add_group(checks, *group, {kSimulated[seed % kSimulated.size()]}, 0, tally, seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(tally.unimplemented, 0);
  checks.expect_right();
}

TEST(Simulated, RandomMaskedProductsMeanTheirGraphs) {
  expect_right_products("simulated_masked", testing::test_seed(20260503), testing::scaled(24),
                        testing::random_masked_product, kSimulated, 0);
}

// The mask leaves no steps of K to the first block of rows and only a few to the others. Loads that are issued ahead
// therefore read slots of the ring buffer that no step has filled.
TEST(Simulated, ReadsThatRunAheadOfFewStepsMeanTheirGraph) {
  const Graph group = parse(R"(graph {
  %0 = input "a" : f32[18,49] normal(0,1)
  %1 = iota axis=[0] : i64[18,49]
  %2 = iota axis=[1] : i64[18,49]
  %3 = sub %1 %2 : i64[18,49]
  %4 = constant 4 : i64[18,49]
  %5 = gt %3 %4 : b1[18,49]
  %6 = constant 0 : f32[18,49]
  %7 = select %5 %0 %6 : f32[18,49]
  %8 = input "b" : f32[49,49] normal(0,1)
  %9 = contract %7 %8 "mk,kn->mn" : f32[18,49]
  output "y" %9
})")
                          .value();
  const Machine machine = testing::machine_named("sim:cuda");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  CompiledChecks checks("simulated_ahead");
  const int number = checks.group(group).value();
  for (const Point& point : testing::sample_points(space, 400, 1)) {
    const Schedule schedule = space.schedule(point);
    if (schedule[kRegisterStages] != 2 || schedule[kStages] < 3 || checks.kernels() == 8) continue;
    const Kernel kernel = lower(group, domain, schedule, machine).value();
    checks.add(number, emit(kernel, machine).value(), space.text(point));
  }
  EXPECT_EQ(checks.kernels(), 8);
  checks.expect_right();
}

TEST(Simulated, CoversOfRandomGraphsMeanTheirGroups) {
  const uint64_t first = testing::test_seed(20260401);
  CompiledChecks checks("simulated_random");
  Tally tally;
  std::set<std::string> seen;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(24)); ++seed) {
    add_random_cover(checks, seed, kSimulated[seed % kSimulated.size()], 3, tally, seen);
    if (HasFatalFailure()) return;
  }
  checks.expect_right();
}

}  // namespace
}  // namespace wl

// Every legal way to lower a group computes what the group's graph says. Kernels are interpreted, instruction by
// instruction, and compared with the double-precision oracle at every output element.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/points.h"

namespace wl {
namespace {

using testing::compare;
using testing::machine_with;
using testing::parsed;

// The number of schedules that are tested besides the seeds, for each group and target.
const int kPoints = static_cast<int>(std::min<int64_t>(24, testing::scaled(24)));

struct Tally {
  int kernels = 0, unimplemented = 0;
};

// Lowers all seeds and about `points` further schedules of a group (GPUs: drawn at random; else evenly spread over the
// first 100,000), and compares each kernel's results with the oracle.
void check_group(const Graph& group, const Machine& machine, int points, Tally& tally) {
  const auto domain = analyze(group, machine);
  ASSERT_TRUE(domain.ok()) << domain.status() << "\n" << print(group);
  const auto space = space_of(group, *domain, machine);
  ASSERT_TRUE(space.ok()) << space.status();
  const std::vector<Point> chosen = machine.target->is_gpu() ? testing::sample_points(*space, points)
                                                             : testing::spread_points(*space, points, 100'000);
  for (const Point& point : chosen) {
    const auto kernel = lower(group, *domain, space->schedule(point), machine);
    if (absl::IsUnimplemented(kernel.status())) {
      if (tally.unimplemented++ == 0)
        std::printf("not lowered: %s\n%s\n", kernel.status().ToString().c_str(), print(group).c_str());
      continue;
    }
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << print(group) << space->text(point);
    ++tally.kernels;
    const std::string difference = compare(group, *kernel);
    ASSERT_EQ(difference, "") << print(group) << domain->text() << "\n" << space->text(point) << "\n" << print(*kernel);
  }
}

TEST(Lower, EverySampledScheduleOfTheClassesMeansTheGraph) {
  Tally tally;
  for (int row : {0, 2})  // CPU targets with vectors of 16 and of 4 elements
    for (const char* text : testing::sampled(testing::kGroups, static_cast<uint64_t>(row))) {
      const Graph group = parsed(text);
      check_group(group, machine_with(row), kPoints, tally);
      if (HasFatalFailure()) return;
    }
  std::printf("%d kernels, %d not lowered\n", tally.kernels, tally.unimplemented);
  EXPECT_EQ(tally.unimplemented, 0);
}

// Maps with a table that exceeds a small cache and is read again by every iteration of a loop: of the outermost loop,
// of a loop around the tiles of a row, or of a nested loop.
TEST(Lower, BandsOfMapsMeanTheGraph) {
  constexpr const char* kMaps[] = {
      R"(graph {
  %0 = input "x" : f32[3,8,32] normal(0,1)
  %1 = input "t" : f32[8,32] normal(0,1)
  %2 = input "u" : f32[32] normal(0,1)
  %3 = broadcast %1 dims=[1,2] : f32[3,8,32]
  %4 = broadcast %2 dims=[2] : f32[3,8,32]
  %5 = fma %0 %3 %4 : f32[3,8,32]
  output "y" %5
})",
      R"(graph {
  %0 = input "x" : f32[3,8192] normal(0,1)
  %1 = input "t" : f32[8192] normal(0,1)
  %2 = broadcast %1 dims=[1] : f32[3,8192]
  %3 = mul %0 %2 : f32[3,8192]
  output "y" %3
})",
      R"(graph {
  %0 = input "x" : f32[2,3,4,2,37] normal(0,1)
  %1 = input "t" : f32[2,4,2,37] normal(0,1)
  %2 = input "u" : f32[4,37] normal(0,1)
  %3 = broadcast %1 dims=[0,2,3,4] : f32[2,3,4,2,37]
  %4 = broadcast %2 dims=[2,4] : f32[2,3,4,2,37]
  %5 = fma %0 %3 %4 : f32[2,3,4,2,37]
  output "y" %5
})"};
  Machine machine = machine_with(0);
  machine.l2_bytes = 512;
  for (const char* text : kMaps) {
    const Graph group = parsed(text);
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    std::set<int64_t> bands;
    space.enumerate([&](const Point& point) {
      const Schedule schedule = space.schedule(point);
      if (schedule[kUnroll] > 2 || schedule[kCompiler] != 0 || schedule[kCacheBlockRows] == 0) return true;
      bands.insert(schedule[kCacheBlockRows]);
      const auto kernel = lower(group, domain, schedule, machine);
      EXPECT_TRUE(kernel.ok()) << kernel.status() << space.text(point);
      if (kernel.ok()) {
        EXPECT_EQ(compare(group, *kernel), "") << space.text(point) << print(*kernel);
      }
      return !::testing::Test::HasFailure();
    });
    EXPECT_EQ(bands, (std::set<int64_t>{1, 4})) << domain.text();
  }
}

// Tests GPU targets with waves of 32 and of 64 lanes.
TEST(Lower, EverySampledScheduleForLanesMeansTheGraph) {
  Tally tally;
  int groups = 0;
  uint64_t turn = 0;
  for (const char* target : {"sim:cuda", "sim:hip", "cuda:sm_90a", "hip:gfx1100"})
    for (const char* text : testing::sampled(testing::kGroups, ++turn)) {
      const Graph group = parsed(text);
      check_group(group, machine_with(target), kPoints, tally);
      if (HasFatalFailure()) return;
      ++groups;
    }
  std::printf("%d kernels, %d not lowered\n", tally.kernels, tally.unimplemented);
  EXPECT_EQ(tally.unimplemented, 0);
  EXPECT_GT(tally.kernels, kPoints * groups / 4);
}

// Rows with infinities and NaN, whose maximum and sum are computed in one pass.
TEST(Lower, RunningMaximaOfSpecialRowsMeanTheGraph) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  Graph group = parsed(R"(graph {
  %0 = input "x" : f32[6,83] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[6]
  %2 = broadcast %1 dims=[0] : f32[6,83]
  %3 = sub %0 %2 : f32[6,83]
  %4 = exp %3 : f32[6,83]
  %5 = reduce_sum %4 axes=[1] : f32[6]
  %6 = log %5 : f32[6]
  output "y" %6
  output "z" %1
})");
  std::vector<double>& values = group.nodes[0].fill.literal;
  for (int i = 0; i < 6 * 83; ++i) values.push_back(std::sin(i) * 20);
  for (int i = 0; i < 83; ++i) values[i] = -kInf;
  for (int i = 0; i < 80; ++i) values[83 + i] = -kInf;
  for (int i = 3; i < 83; ++i) values[2 * 83 + i] = -kInf;
  values[3 * 83 + 40] = kInf;
  values[4 * 83 + 82] = kNan;
  Machine small = machine_with(2);
  small.l1_bytes = 512;  // bytes of a cache so small that the kernel computes rows in chunks
  for (const Machine& machine : {machine_with("sim:cuda"), small}) {
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    int kernels = 0, shared = 0;
    std::set<int64_t> chunks;
    space.enumerate([&](const Point& point) {
      const Schedule schedule = space.schedule(point);
      const int64_t chunk = schedule[kOnline] != 0 ? 1 : schedule[kOnlineChunk];
      if (chunk == 0 || schedule[kRowsPerTeam] > 2 || schedule[kStreamStores] != 0 || schedule[kMinBlocks] != 0)
        return true;
      chunks.insert(chunk);
      const auto kernel = lower(group, domain, schedule, machine);
      EXPECT_TRUE(kernel.ok()) << kernel.status();
      if (kernel.ok()) {
        const std::string difference = compare(group, *kernel);
        EXPECT_EQ(difference, "") << space.text(point) << print(*kernel);
      }
      ++kernels;
      shared += schedule[kReductionBlocks] > 1;
      return !::testing::Test::HasFailure();
    });
    EXPECT_GT(kernels, 10);
    if (machine.target->is_gpu())
      EXPECT_GT(shared, 10);
    else
      EXPECT_EQ(chunks, (std::set<int64_t>{32, 64}));
  }
}

TEST(Lower, RandomContractionsForLanesMeanTheirGroups) {
  Tally tally;
  const uint64_t first = testing::test_seed(20260501);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(30)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::ContractionText(seed, 20'000).text());
    for (const char* target : {"sim:cuda", "sim:hip"}) {
      check_group(group, machine_with(target), 4, tally);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels, %d not lowered\n", tally.kernels, tally.unimplemented);
  EXPECT_EQ(tally.unimplemented, 0);
}

TEST(Lower, CoversOfRandomGraphsForLanesMeanTheirGroups) {
  Tally tally;
  const Machine machine = machine_with("sim:cuda");
  for (uint64_t seed = 20260301; seed < 20260301 + 100; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph =
        random_graph(seed, {.nodes = 14, .largest = 200, .f32_only = seed % 2 == 0, .zero_extents = true});
    const auto cover = cover_greedy(graph, machine);
    ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(graph);
    for (const Group& group : cover->groups) {
      check_group(extract(graph, group), machine, 3, tally);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels, %d not lowered\n", tally.kernels, tally.unimplemented);
  EXPECT_GT(tally.kernels, 500);
}

class LowerFuzz : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, LowerFuzz, ::testing::Range(0, testing::kShards));

TEST_P(LowerFuzz, CoversOfRandomGraphsMeanTheirGroups) {
  const auto [first, last] = seeds(10'000, 20260101);
  Tally tally;
  Machine machine = machine_with(2);
  for (uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    machine.l1_bytes = seed % 4 == 0 ? 512 : 32 << 10;  // bytes; a cache of 512 bytes does not hold a long row
    const Graph graph = random_graph(seed, {.nodes = 14, .largest = 200, .f32_only = seed % 2 == 0});
    for (const auto& cover : {cover_greedy(graph, machine), cover_one_per_op(graph, machine)}) {
      ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(graph);
      for (const Group& group : cover->groups) {
        check_group(extract(graph, group), machine, 2, tally);
        if (HasFatalFailure()) return;
      }
    }
  }
  std::printf("%d kernels, %d not lowered\n", tally.kernels, tally.unimplemented);
  EXPECT_EQ(tally.unimplemented, 0);
  EXPECT_GT(tally.kernels, static_cast<int>(last - first));
}

}  // namespace
}  // namespace wl

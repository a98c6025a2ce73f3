// Levels of the values of stitched groups: every assignment of levels computes the graph, and no group is refused for
// its size alone.
#include "compiler/cover/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/cover/stitching.h"
#include "compiler/cover/values.h"
#include "compiler/domain/axes.h"
#include "compiler/kernel/verify.h"
#include "tests/unit/cover/levels.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/points.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using testing::machine_with;
using testing::parsed;
using testing::SmallBlocks;

TEST(Levels, AReaderComputesAValueAgain) {
  const Graph graph = parsed(testing::kNormThenProduct);
  const Machine machine = machine_with("cpu:avx2");
  const Cover cover = cover_greedy(graph, machine).value();
  const std::vector<PassedValue> values = passed_values(graph, cover);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].node, 9);
  EXPECT_EQ(values[0].bytes, 32 * 24 * 4);
  const auto again = computed_again(graph, cover, 9);
  ASSERT_TRUE(again.has_value());
  ASSERT_EQ(again->groups.size(), 2u);
  const std::vector<PassedValue> passed = passed_values(graph, *again);
  ASSERT_EQ(passed.size(), 2u);  // the sum of a row, and one divided by its standard deviation
  for (const PassedValue& value : passed) EXPECT_EQ(value.bytes, 32 * 4);
  EXPECT_THAT(again->groups[1].ops, ::testing::IsSupersetOf({4, 9, 10}));
  EXPECT_FALSE(computed_again(graph, cover, 7).has_value());                // no group stores it
  EXPECT_FALSE(computed_again(graph, *again, passed[0].node).has_value());  // it is a reduction
}

// Counts the kernels whose values have a level other than scratch.
struct Counted {
  int kernels = 0, again = 0, device = 0;
};

void print(const Counted& counted) {
  std::printf("%d kernels, %d compute values again, %d have values in device memory\n", counted.kernels, counted.again,
              counted.device);
}

// Expects that points of every assignment of levels compute the group.
void check_levels(const Graph& group, const Machine& machine, Counted* counted) {
  const auto domain = stitch(group, machine, {.turns = false});
  if (!domain.ok()) return;
  const auto space = space_of(group, *domain, machine);
  if (!space.ok()) return;
  for (const Point& point : testing::points_of_levels(*space, *domain->stitch, 2)) {
    const Stitched* const choice = named_choice(*domain->stitch, space->schedule(point));
    ASSERT_NE(choice, nullptr);
    const auto has = [&](ValueLevel level) {
      return std::find(choice->levels.begin(), choice->levels.end(), level) != choice->levels.end();
    };
    testing::expect_meanings(group, *domain, *space, machine, {point}, &counted->kernels,
                             [&](const Kernel& kernel, const Point&) {
                               EXPECT_EQ(kernel.own_bytes() > 0, has(ValueLevel::kDevice)) << space->text(point);
                             });
    if (::testing::Test::HasFatalFailure()) return;
    counted->again += has(ValueLevel::kAgain) ? 1 : 0;
    counted->device += has(ValueLevel::kDevice) ? 1 : 0;
  }
}

TEST(Levels, EveryAssignmentMeansTheGraph) {
  Counted counted;
  for (const char* target : {"cpu:avx512", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx1100"})
    for (const char* text : testing::kStitched) {
      SCOPED_TRACE(cat(target, "\n", text));
      const SmallBlocks small(machine_with(target), 8192);
      check_levels(parsed(text), small.machine, &counted);
      if (HasFatalFailure()) return;
    }
  print(counted);
  EXPECT_GE(counted.again, 10);
  EXPECT_GE(counted.device, 20);
}

TEST(Levels, RandomGroupsMeanTheGraph) {
  const uint64_t first = testing::test_seed(20261204);
  const auto wanted = static_cast<int>(testing::scaled(2000));
  Counted counted;
  for (uint64_t seed = first; counted.kernels < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = random_graph(seed, {.nodes = 12, .largest = 400, .f32_only = true, .zero_extents = false});
    const char* const target = seed % 3 == 0 ? "cuda:sm_80" : seed % 3 == 1 ? "hip:gfx942" : "cpu:avx2";
    const SmallBlocks small(machine_with(target), 1024);
    if (analyze(graph, small.machine).ok()) continue;
    check_levels(graph, small.machine, &counted);
    if (HasFatalFailure()) return;
  }
  print(counted);
  EXPECT_GT(counted.again, 0);
  EXPECT_GT(counted.device, 0);
}

std::string norm_and_product(int64_t rows, int64_t columns) {
  const std::string x = cat("f32[", rows, ",", columns, "]");
  return cat("graph {\n  %0 = input \"x\" : ", x, "\n  %1 = input \"w\" : f32[", columns,
             ",64]\n  %2 = mul %0 %0 : ", x, "\n  %3 = reduce_sum %2 axes=[1] : f32[", rows,
             "]\n  %4 = rsqrt %3 : f32[", rows, "]\n  %5 = broadcast %4 dims=[0] : ", x, "\n  %6 = mul %0 %5 : ", x,
             "\n  %7 = contract %6 %1 \"mk,kn->mn\" : f32[", rows, ",64]\n  output \"y\" %7\n}");
}

// The values of one row of a block would exceed its shared memory.
TEST(Levels, NothingIsRefusedForItsSize) {
  const Graph group = parsed(norm_and_product(256, 1 << 17).c_str());
  for (const char* target : {"cuda:sm_75", "cuda:sm_90a", "hip:gfx942", "hip:gfx1100"})
    for (const auto levels : {StitchOptions::Levels::kAll, StitchOptions::Levels::kNeeded}) {
      const Machine machine = machine_with(target);
      const auto domain = stitch(group, machine, {.levels = levels});
      ASSERT_TRUE(domain.ok()) << target << domain.status();
      const Space space = space_of(group, *domain, machine).value();
      EXPECT_TRUE(lower(group, *domain, space.schedule(space.seeds[0]), machine).ok()) << target;
      const absl::Status refused = stitch(group, machine, {.levels = StitchOptions::Levels::kScratch}).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    }
}

TEST(Levels, OlderPlansMeanScratch) {
  const Machine machine = machine_with("cuda:sm_90a");
  const Graph group = parsed(norm_and_product(256, 8192).c_str());
  const Domain domain = analyze_group(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  Point scratch = space.seeds[0];
  for (const Point& seed : space.seeds)
    if (space.text(seed).find(" v0.level=scratch") != std::string::npos) scratch = seed;
  std::string text = space.text(scratch);
  ASSERT_THAT(text, HasSubstr(" v0.level=scratch"));
  EXPECT_EQ(space.parse(text.erase(text.find(" v0.level=scratch"), 17)).value(), scratch);
}

// Threads that load what others of their block stored in device memory need a barrier, as with shared memory.
TEST(Levels, DeviceMemoryNeedsBarriers) {
  const SmallBlocks small(machine_with("cuda:sm_90a"), 32768);
  const Graph group = parsed(norm_and_product(256, 512).c_str());
  const Domain domain = stitch(group, small.machine).value();
  const Space space = space_of(group, domain, small.machine).value();
  int tried = 0;
  for (const Point& point : testing::points_of_levels(space, *domain.stitch, 4)) {
    Kernel kernel = lower(group, domain, space.schedule(point), small.machine).value();
    if (kernel.own_bytes() == 0 || kernel.threads <= kernel.wave) continue;
    ++tried;
    EXPECT_EQ(kernel.work_bytes(), kernel.grid * kernel.own_bytes());
    int barriers = 0;
    const std::function<void(std::vector<Instr>&)> drop = [&](std::vector<Instr>& body) {
      barriers += static_cast<int>(std::erase_if(body, [](const Instr& i) { return i.op == InstrOp::kBarrier; }));
      for (Instr& instr : body) drop(instr.body);
    };
    drop(kernel.body);
    EXPECT_GT(barriers, 0);
    EXPECT_THAT(std::string(verify(kernel).message()), HasSubstr("no barrier between"));
    kernel.wave = 0;
    EXPECT_FALSE(verify(kernel).ok());
  }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace wl

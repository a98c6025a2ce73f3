// Compiles and runs kernels of stitched groups: those for this machine's CPU, and those for GPUs on the simulated GPU.
#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/random_group.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/cover/levels.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contract/stitched_products.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

TEST(StitchedCode, MeansItsGraph) {
  testing::CompiledChecks checks("stitched");
  std::vector<Machine> machines = {testing::machine_with("cuda:sm_80"), testing::machine_with("hip:gfx90a")};
  machines.push_back(testing::machine_named(testing::runnable_targets().back()));
  for (const Machine& machine : machines) {
    for (const char* text : testing::kStitched) {
      const Graph group = parse(text).value();
      const Domain domain = analyze_group(group, machine).value();
      ASSERT_EQ(domain.cls, LoopClass::kStitched);
      const Space space = space_of(group, domain, machine).value();
      const int number = checks.group(group).value();
      std::vector<Point> points = testing::sample_points(space, 2, 3);
      points.erase(points.begin() + 1, points.end() - 1);
      for (const Point& point : testing::sampled(points, checks.kernels())) {
        const auto kernel = lower(group, domain, space.schedule(point), machine);
        ASSERT_TRUE(kernel.ok()) << kernel.status() << text << space.text(point);
        const auto source = testing::simulated(*kernel, machine);
        ASSERT_TRUE(source.ok()) << source.status() << text << space.text(point);
        checks.add(number, *source, space.text(point));
      }
    }
  }
  checks.expect_right();
}

// Products of stages whose operands are copied asynchronously, by the instructions of single waves and by those that
// read shared memory.
TEST(StitchedCode, ThatCopiesAheadMeansItsGraph) {
  testing::CompiledChecks checks("stitched_copies");
  const uint64_t first = testing::test_seed(20261204);
  int64_t in_memory = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(40)); ++seed)
    for (const char* target : {"cuda:sm_90a", "cuda:sm_80", "hip:gfx942", "hip:gfx950"}) {
      SCOPED_TRACE(cat("seed ", seed, " ", target));
      const Machine machine = testing::machine_named(target);
      const Graph group = testing::drawn_stages(seed);
      const Domain domain = analyze_group(group, machine).value();
      const Space space = space_of(group, domain, machine).value();
      const std::vector<Point> points = testing::drawn_copying_points(space, 200, 1, seed);
      const int number = checks.group(group, seed).value();
      for (const Point& point : points) {
        const Kernel kernel = lower(group, domain, space.schedule(point), machine).value();
        const auto source = testing::simulated(kernel, machine);
        ASSERT_TRUE(source.ok()) << source.status() << space.text(point);
        EXPECT_NE(source->text.find("wl_async"), std::string::npos) << space.text(point);
        checks.add(number, *source, space.text(point));
        in_memory += testing::stages_of(space, point).in_memory ? 1 : 0;
      }
    }
  std::printf("%d kernels, %lld multiply in shared memory\n", checks.kernels(), static_cast<long long>(in_memory));
  EXPECT_GT(in_memory, 0);
  checks.expect_right();
}

// Attention with values in registers, whose keys and values other waves copy, also as boxes.
TEST(StitchedCode, ThatOtherWavesCopyForMeansItsGraph) {
  testing::CompiledChecks checks("stitched_waves");
  const Machine machine = testing::machine_named("cuda:sm_90a");
  const uint64_t first = testing::test_seed(20261206);
  int64_t boxes = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(40)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = testing::drawn_resident_attention(seed);
    const Domain domain = analyze_group(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> seeds = testing::with_resident_values(space, space.seeds);
    for (const bool in_boxes : {false, true}) {
      const std::vector<Point> points = testing::with_copying_waves(space, seeds, in_boxes);
      if (points.empty()) continue;
      const Point& point = points[seed % points.size()];
      const Kernel kernel = lower(group, domain, space.schedule(point), machine).value();
      const auto source = testing::simulated(kernel, machine);
      ASSERT_TRUE(source.ok()) << source.status() << space.text(point);
      EXPECT_EQ(source->text.find("wl_box_load") != std::string::npos, in_boxes);
      checks.add(checks.group(group, seed).value(), *source, space.text(point));
      boxes += in_boxes ? 1 : 0;
    }
  }
  std::printf("%d kernels, %lld with boxes\n", checks.kernels(), static_cast<long long>(boxes));
  checks.expect_right();
}

// Values that are computed again, or that lie in what a block has of device memory.
TEST(StitchedCode, WithOtherLevelsMeansItsGraph) {
  testing::CompiledChecks checks("stitched_levels");
  int device = 0;
  for (const char* target : {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942"}) {
    const testing::SmallBlocks small(testing::machine_with(target), 8192);
    for (const char* text : testing::kStitched) {
      const Graph group = parse(text).value();
      const Domain domain = stitch(group, small.machine, {.turns = false}).value();
      const Space space = space_of(group, domain, small.machine).value();
      const int number = checks.group(group).value();
      for (const Point& point :
           testing::sampled(testing::points_of_levels(space, *domain.stitch, 1), checks.kernels())) {
        const Kernel kernel = lower(group, domain, space.schedule(point), small.machine).value();
        const auto source = testing::simulated(kernel, small.machine);
        ASSERT_TRUE(source.ok()) << source.status() << text << space.text(point);
        EXPECT_EQ(source->text.find("WL_OWN(") != std::string::npos, kernel.own_bytes() > 0);
        device += kernel.own_bytes() > 0 ? 1 : 0;
        checks.add(number, *source, space.text(point));
      }
    }
  }
  std::printf("%d kernels, %d with values in device memory\n", checks.kernels(), device);
  EXPECT_GT(device, 0);
  checks.expect_right();
}

}  // namespace
}  // namespace wl

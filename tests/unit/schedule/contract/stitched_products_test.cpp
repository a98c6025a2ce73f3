// Products that are stages of stitched groups: they copy operands asynchronously and use matrix instructions that read
// shared memory, as products alone do, and every schedule computes its graph.
#include "tests/unit/schedule/contract/stitched_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

using testing::instrs_in;
using testing::machine_with;

TEST(StitchedProducts, CopyAheadAndMultiplyInSharedMemory) {
  const uint64_t first = testing::test_seed(20261203);
  int kernels = 0, copying = 0, in_memory = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(24)); ++seed)
    for (const char* target : {"cuda:sm_90a", "cuda:sm_80", "hip:gfx942"}) {
      SCOPED_TRACE(cat("seed ", seed, " ", target));
      const Graph group = testing::drawn_stages(seed);
      const Machine machine = machine_with(target);
      const Domain domain = analyze_group(group, machine).value();
      ASSERT_EQ(domain.cls, LoopClass::kStitched);
      const Space space = space_of(group, domain, machine).value();
      const std::vector<Point> points = testing::drawn_copying_points(space, 300, 2, seed);
      testing::expect_meanings(group, domain, space, machine, points, &kernels,
                               [&](const Kernel& kernel, const Point& point) {
                                 const testing::StageChoices stages = testing::stages_of(space, point);
                                 EXPECT_GT(instrs_in(kernel.body, InstrOp::kAsyncLoad), 0) << space.text(point);
                                 EXPECT_EQ(instrs_in(kernel.body, InstrOp::kMmaWait) > 0, stages.in_memory);
                                 ++copying;
                                 in_memory += stages.in_memory;
                               });
      if (HasFatalFailure()) return;
    }
  std::printf("%d kernels, %d with asynchronous copies, %d of them multiply in shared memory\n", kernels, copying,
              in_memory);
  if (testing::scaled(24) < 6) return;
  EXPECT_GT(copying, 20);
  EXPECT_GT(in_memory, 10);
}

// Attention whose keys and values are copied by waves that do nothing else, also as boxes.
TEST(StitchedProducts, AreCopiedForByOtherWaves) {
  const Machine machine = machine_with("cuda:sm_90a");
  const uint64_t first = testing::test_seed(20261205);
  int kernels = 0, boxes = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(40)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = testing::drawn_resident_attention(seed);
    const Domain domain = analyze_group(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> seeds = testing::with_resident_values(space, space.seeds);
    std::vector<Point> points = testing::with_copying_waves(space, seeds, false);
    for (Point& point : testing::with_copying_waves(space, seeds, true)) points.push_back(std::move(point));
    testing::expect_meanings(group, domain, space, machine, points, &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               EXPECT_EQ(kernel.copiers, 128);
                               const bool copies_boxes = space.schedule(point)[kTma] != 0;
                               EXPECT_EQ(instrs_in(kernel.body, InstrOp::kBoxLoad) > 0, copies_boxes);
                               boxes += copies_boxes ? 1 : 0;
                               testing::expect_reads_back(kernel);
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d of them copy boxes\n", kernels, boxes);
  if (testing::scaled(40) < 10) return;
  EXPECT_GT(kernels, 10);
  EXPECT_GT(boxes, 3);
}

// A plan whose waves copy is refused where values are in shared memory, for other numbers of threads, and where boxes
// are asked for without such waves.
TEST(StitchedProducts, PlansWithCopyingWavesAreChecked) {
  const Machine machine = machine_with("cuda:sm_90a");
  const Graph group = testing::parsed(testing::attention_of_halves("bf16", 256, 512, 128, 128));
  const Domain domain = analyze_group(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  const std::vector<Point> points = testing::with_copying_waves(space, {space.seeds[0]}, true);
  ASSERT_EQ(points.size(), 1u);
  ASSERT_TRUE(space.parse(space.text(points[0])).ok());
  const auto with = [&](Choice choice, int64_t value) {
    Point point = points[0];
    set_choice(space, point, choice, value);
    return space.parse(space.text(point)).status();
  };
  EXPECT_TRUE(with(kMinBlocks, 4).ok());
  // In a packed group the threads may be a number that this space does not have.
  Schedule other = space.schedule(points[0]);
  EXPECT_TRUE(space.parts[0].legal(other));
  other.set(kTeam, 96);
  EXPECT_FALSE(space.parts[0].legal(other));
  for (const absl::Status& status :
       {with(kTurnValues, 0), with(kTeam, 256), with(kCopyingWaves, 0), with(kMinBlocks, 16)})
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

}  // namespace
}  // namespace wl

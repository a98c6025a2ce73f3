// Contractions whose tiles continue in the next row of an image (choices row_runs and column_runs): every schedule
// computes its graph.
#include <gtest/gtest.h>

#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contract/convolutions.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

using testing::Convolution;
using testing::instrs_in;
using testing::Searched;

TEST(Runs, OfRandomProductsMeanTheirGraphs) {
  int kernels = 0, matrices = 0, views = 0;
  const uint64_t first = testing::test_seed(20261129);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(32)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const char* const targets[] = {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx1100", "cuda:sm_90a"};
    const Searched group(testing::product_in_runs(seed), targets[seed % std::size(targets)]);
    if (group.domain.cls != LoopClass::kContract) continue;
    const std::vector<Point> points = testing::points_in_runs(group.space, 2, seed);
    testing::expect_meanings(group.graph, group.domain, group.space, group.machine, points, &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               matrices += instrs_in(kernel.body, InstrOp::kMma) > 0;
                               views += instrs_in(kernel.body, InstrOp::kView);
                               EXPECT_LE(kernel.scratch_bytes(), contract_shared(group.space.schedule(point), 4));
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d with matrices\n", kernels, matrices);
  EXPECT_EQ(views, kernels);
  EXPECT_GE(kernels, testing::scaled(32));
  if (testing::scaled(32) < 10) return;
  EXPECT_GE(3 * matrices, kernels);
}

// An image row has 56 pixels, so a tile of one image row has at most 64 rows. Tiles of several image rows are larger,
// and none of their rows is empty.
TEST(Runs, MakeLargeTilesOfSmallImages) {
  const Searched group(Convolution{"bf16", 32, 56, 56, 256, 256}.text(), "cuda:sm_90a");
  const Schedule first = group.space.schedule(group.space.seeds[0]);
  EXPECT_GT(rows_of_tile(first), first[kTileRows]);
  EXPECT_GE(rows_of_tile(first), 128);
  const int64_t computed = product_loops(group.domain).tiles(first) * rows_of_tile(first) * columns_of_tile(first);
  EXPECT_EQ(computed, 32 * 56 * 56 * 256);  // the tiles leave no row or column empty
}

// With images of 7 x 7 pixels, more than half of each fragment of 16 rows would be empty if a tile had only one image
// row.
TEST(Runs, BringMatricesToTheSmallestImages) {
  const Searched group(Convolution{"bf16", 32, 7, 7, 512, 512}.text(), "cuda:sm_80");
  const Schedule first = group.space.schedule(group.space.seeds[0]);
  EXPECT_NE(first[kMatrix], kNoMatrix);
  EXPECT_GT(rows_of_tile(first), first[kTileRows]);
}

// Padding is excluded by guards. Vectors run along channels, so each vector lies either inside the image or in the
// padding, and the image is copied asynchronously.
TEST(Runs, CopyPaddedImagesWithoutRegisters) {
  const Searched group(Convolution{"bf16", 2, 14, 14, 64, 64}.text(), "cuda:sm_90a");
  const Kernel kernel = group.lowered(group.space.seeds[0]);
  // Each of the two operands has at least one asynchronous copy before the loop over k and one in the loop.
  EXPECT_GE(instrs_in(kernel.body, InstrOp::kAsyncLoad), 4);
  EXPECT_EQ(instrs_in(kernel.body, InstrOp::kLoad), 0);
  EXPECT_EQ(instrs_in(kernel.body, InstrOp::kStore), 1);
}

// With channels first, vectors run along pixels and may begin in the padding, so the image is copied through registers.
TEST(Runs, DoNotCopyVectorsThatBeginInThePadding) {
  const Searched group(Convolution{"bf16", 2, 16, 16, 64, 64, 3, 1, 1, true, false}.text(), "cuda:sm_90a");
  for (const Point& point : group.space.seeds) {
    const Schedule schedule = group.space.schedule(point);
    if (schedule[kMatrix] == kNoMatrix || schedule[kAsyncCopies] == 0) continue;
    EXPECT_GT(instrs_in(group.lowered(point).body, InstrOp::kLoad), 0);
  }
}

}  // namespace
}  // namespace wl

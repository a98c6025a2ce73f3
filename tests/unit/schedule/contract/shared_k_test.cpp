// Contractions whose loop over K is divided among several blocks (choice reduction_blocks): every schedule computes its
// graph.
#include <gtest/gtest.h>

#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contract/shared_factor_products.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

using testing::instrs_in;
using testing::machine_with;
using testing::parsed;

TEST(SharedK, OfRandomProductsMeansTheirGraphs) {
  int kernels = 0, matrices = 0;
  const uint64_t first = testing::test_seed(20261128);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(24)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::deep_product(seed));
    const char* const targets[] = {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx1100", "cuda:sm_90a"};
    const Machine machine = machine_with(std::string_view(targets[seed % std::size(targets)]));
    const Domain domain = analyze(group, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kContract);
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> points = testing::shared_points(space, 2, seed);
    ASSERT_FALSE(points.empty());
    testing::expect_meanings(group, domain, space, machine, points, &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               matrices += instrs_in(kernel.body, InstrOp::kMma) > 0;
                               EXPECT_EQ(instrs_in(kernel.body, InstrOp::kPass), 1);
                               EXPECT_EQ(kernel.sweeps(), 1);
                               EXPECT_LE(kernel.scratch_bytes(), contract_shared(space.schedule(point), 4));
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d with matrices\n", kernels, matrices);
  if (testing::scaled(24) < 6) return;
  EXPECT_GT(matrices, 0);
}

// If a product has too few tiles to keep all multiprocessors busy, the first seed divides K among several blocks. If it
// has many tiles, K is not divided.
TEST(SharedK, IsChosenWhereThereAreFewTiles) {
  const Machine machine = machine_with("cuda:sm_90a");
  const auto first = [&](int rows, int columns) {
    const Graph group = parsed(testing::shared_factor_product_of("bf16", rows, columns, 4096, "mk", "nk"));
    const Space space = space_of(group, analyze(group, machine).value(), machine).value();
    return space.schedule(space.seeds[0])[kReductionBlocks];
  };
  EXPECT_GT(first(16, 4096), 1);
  EXPECT_GT(first(64, 1024), 1);
  EXPECT_EQ(first(4096, 4096), 1);
}

// A stage of a stitched group cannot contain a pass over the grid, so blocks cannot share its K.
TEST(SharedK, IsNotOfferedToStages) {
  Machine machine = machine_with("cuda:sm_90a");
  machine.part_elements = int64_t{1} << 50;
  const Graph group = parsed(testing::shared_factor_product_of("bf16", 16, 64, 4096, "mk", "nk"));
  const Space space = space_of(group, analyze(group, machine).value(), machine).value();
  EXPECT_EQ(axis_of(space.axes, kReductionBlocks), nullptr);
}

}  // namespace
}  // namespace wl

// The choice raster_rows: neighbouring blocks compute tiles in several rows of tiles instead of one row of tiles.
#include <gtest/gtest.h>

#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contract/convolutions.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

Space space_for(const std::string& text, const Machine& machine) {
  const Graph graph = parsed(text);
  return space_of(graph, analyze(graph, machine).value(), machine).value();
}

TEST(Raster, IsThereWhereBlocksAreMoreThanUnits) {
  Machine machine = machine_with(std::string_view("cuda:sm_90a"));
  machine.units = 132;
  for (const int n : {512, 4096, 8192}) {
    const Space space = space_for(testing::shared_factor_product_of("bf16", n, n, n), machine);
    const bool is_large = n > 512;
    EXPECT_EQ(axis_of(space.axes, kRasterRows) != nullptr, is_large) << n;
    if (!is_large) continue;
    // The blocks that run at the same time compute tiles that form roughly a square of the result. So they read less
    // of the operands than if they computed whole rows of tiles.
    const Schedule first = space.schedule(space.seeds[0]);
    const int64_t rows = first[kRasterRows] * rows_of_tile(first);
    EXPECT_GE(rows, 1024) << space.text(space.seeds[0]);
    EXPECT_LE(rows, 4096) << space.text(space.seeds[0]);
  }
}

// Schedules with raster_rows compute their graphs. With one multiprocessor, even small products offer raster_rows.
TEST(Raster, MeansTheGraph) {
  int kernels = 0;
  const uint64_t first = testing::test_seed(20261201);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(12)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const char* const targets[] = {"cuda:sm_80", "hip:gfx942", "cuda:sm_90a"};
    Machine machine = machine_with(std::string_view(targets[seed % std::size(targets)]));
    machine.units = 1;
    const int m = 130 + static_cast<int>(seed * 37 % 190), n = 130 + static_cast<int>(seed * 53 % 100);
    const Graph graph = parsed(testing::shared_factor_product_of(seed % 2 == 0 ? "bf16" : "f32", m, n, 16));
    const Domain domain = analyze(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    ASSERT_NE(axis_of(space.axes, kRasterRows), nullptr);
    std::vector<Point> points;
    for (const Point& point : testing::sample_points(space, 64, seed))
      if (space.schedule(point)[kRasterRows] > 1 && points.size() < 2) points.push_back(point);
    testing::expect_meanings(graph, domain, space, machine, points, &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               // The digit of a block's number that changes fastest selects one of the raster_rows
                               // rows of tiles.
                               const Schedule schedule = space.schedule(point);
                               bool found = false;
                               for (const Var& var : kernel.vars)
                                 found = found || (var.name == "raster_row" && var.mod == schedule[kRasterRows]);
                               EXPECT_TRUE(found) << space.text(point);
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels\n", kernels);
  EXPECT_GE(kernels, testing::scaled(12));
}

}  // namespace
}  // namespace wl

// The model of kernels on GPUs: amounts that can be counted by hand, and orders of schedules.
#include "compiler/model/gpu_cost.h"

#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/ir/text.h"
#include "compiler/model/occupancy.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

// A group on an H200, and its kernels by plans without their prefix.
struct Nest {
  explicit Nest(const std::string& text) : graph(parse(text).value()) {
    machine.target = target_named("cuda:sm_90a").value();
    domain = analyze_group(graph, machine).value();
    space = space_of(graph, domain, machine).value();
  }
  Kernel kernel(const std::string& choices) const {
    const Point point = space.parse(space.prefix + " " + choices).value();
    return lower(graph, domain, space.schedule(point), machine).value();
  }
  GpuWork work(const std::string& choices) const { return gpu_work(kernel(choices), machine); }
  double ns(const std::string& choices) const { return gpu_time(kernel(choices), machine).ns; }

  Graph graph;
  Machine machine;
  Domain domain;
  Space space;
};

std::string softmax(int64_t rows, int64_t columns) {
  const std::string of_row = cat("f32[", rows, "]"), whole = cat("f32[", rows, ",", columns, "]");
  return cat("graph {\n%0 = input \"x\" : ", whole, "\n%1 = reduce_max %0 axes=[1] : ", of_row,
             "\n%2 = broadcast %1 dims=[0] : ", whole, "\n%3 = sub %0 %2 : ", whole, "\n%4 = exp %3 : ", whole,
             "\n%5 = reduce_sum %4 axes=[1] : ", of_row, "\n%6 = broadcast %5 dims=[0] : ", whole,
             "\n%7 = div %4 %6 : ", whole, "\noutput \"y\" %7\n}");
}

// The operand of a map that is the same for all rows is read from device memory once, and then from the L2.
TEST(GpuCost, ValuesThatAllRowsShareAreReadOnce) {
  const Nest nest(
      "graph {\n%0 = input \"x\" : f32[4096,1024]\n%1 = input \"b\" : f32[1024]\n"
      "%2 = broadcast %1 dims=[1] : f32[4096,1024]\n%3 = add %0 %2 : f32[4096,1024]\noutput \"y\" %3\n}");
  const GpuWork work = nest.work("vector=4 team=128 teams=1");
  EXPECT_EQ(work.device_bytes, 2 * 4096 * 1024 * 4 + 1024 * 4);
  EXPECT_EQ(work.cached_bytes, 4095 * 1024 * 4);
}

TEST(GpuCost, RowsInRegistersMoveTwiceAndWaitOnce) {
  const Nest nest(softmax(8192, 1024));
  const GpuWork work = nest.work("vector=4 team=128 teams=1 row_storage=registers");
  EXPECT_EQ(work.device_bytes, 2 * 8192 * 1024 * 4);
  EXPECT_EQ(work.cached_bytes, 0);
  EXPECT_EQ(work.teams.waits, 1);
}

// Rows of 256 KiB that a block computes again are too many for the L2 where several blocks are resident.
TEST(GpuCost, RowsThatAreReadAgainComeFromMemoryUnlessTheyFit) {
  const Nest large(softmax(512, 65536)), small(softmax(8192, 4096));
  const std::string again = "vector=4 team=256 teams=1 row_storage=recompute online=1";
  EXPECT_EQ(large.work(again).device_bytes, 3 * 512 * 65536 * 4.0);
  EXPECT_EQ(small.work(again).device_bytes, 2 * 8192 * 4096 * 4);
  EXPECT_EQ(small.work(again).cached_bytes, 8192 * 4096 * 4);
}

// Teams of 128 threads have no work for half of their lanes in rows of 256 elements, so they need twice as many rounds.
TEST(GpuCost, TeamsThatARowDoesNotFillAreSlower) {
  const Nest nest(softmax(131072, 256));
  const double one = nest.ns("vector=4 team=32 teams=4 row_storage=registers");
  const double four = nest.ns("vector=4 team=128 teams=1 row_storage=registers");
  EXPECT_GT(four, 1.3 * one);
}

// Blocks compete for units that compute, and hide each other's waits.
TEST(GpuCost, BlocksHideEachOthersWaits) {
  EXPECT_DOUBLE_EQ(blocks_ns(100, 0, 50, 1), 150);
  EXPECT_DOUBLE_EQ(blocks_ns(0, 0, 50, 4), 50);    // nothing to compete for
  EXPECT_DOUBLE_EQ(blocks_ns(100, 0, 0, 4), 400);  // nothing to hide
  EXPECT_GT(blocks_ns(100, 0, 100, 2), 200);       // they meet at the unit now and then
  EXPECT_LT(blocks_ns(100, 0, 100, 2), 300);
  EXPECT_NEAR(blocks_ns(100, 0, 100, 32), 3200, 1);  // the unit is always busy
  EXPECT_EQ(blocks_ns(100, 10, 10, 0), 0);
}

std::string product(int64_t m, int64_t n, int64_t k) {
  return cat("graph {\n%0 = input \"a\" : bf16[", m, ",", k, "]\n%1 = input \"b\" : bf16[", k, ",", n,
             "]\n%2 = contract %0 %1 \"mk,kn->mn\" : bf16[", m, ",", n, "]\noutput \"y\" %2\n}");
}
std::string of_tile(const std::string& rest) {
  return "tile_rows=128 tile_columns=256 k_step=64 thread_rows=2 thread_columns=64 vector=8 k_unroll=8 async_copies=1 "
         "register_stages=1 reduction_blocks=1 matrix=wgmma64_bf16 min_blocks=1 " +
         rest;
}

// Tiles of 128 x 256 of 8192 x 8192: the 132 blocks that run at once read four rows and all columns of tiles or, with
// a raster of 16 rows, 16 rows and nine columns.
TEST(GpuCost, NeighboursReadTilesOnce) {
  const Nest nest(product(8192, 8192, 8192));
  const std::string rest = " stages=4 persistent=0 copying_waves=0 tma=0";
  const GpuWork rows = nest.work(of_tile("raster_rows=1" + rest)),
                squares = nest.work(of_tile("raster_rows=16" + rest));
  EXPECT_GT(rows.device_bytes, 1.8 * squares.device_bytes);
  EXPECT_EQ(rows.device_bytes + rows.cached_bytes, squares.device_bytes + squares.cached_bytes);
  EXPECT_EQ(rows.products, squares.products);
}

// A block of a product waits for the first step, then for steps of which others are under way.
TEST(GpuCost, CopiesThatAreOrderedAheadAreWaitedForInPart) {
  const Nest nest(product(4096, 4096, 4096));
  const auto chain = [&](const std::string& stages, const std::string& copiers) {
    return nest.work(of_tile("raster_rows=1 persistent=0 tma=0 stages=" + stages + " copying_waves=" + copiers));
  };
  EXPECT_EQ(chain("4", "4").teams.waits, 1);
  EXPECT_EQ(chain("4", "4").teams.ahead, 63 / 3.);
  EXPECT_EQ(chain("4", "4").teams.copies, 0);
  EXPECT_EQ(chain("4", "4").copiers.copies, chain("4", "0").teams.copies * 256 / 128 * 64 / 67);
  EXPECT_GT(chain("3", "0").teams.ahead, chain("4", "0").teams.ahead);
}

// Sums of 128 x 256 in 256 threads take 128 registers of each.
TEST(GpuCost, SumsAreHeldInRegisters) {
  const Nest nest(product(4096, 4096, 4096));
  const double registers =
      tile_registers(nest.kernel(of_tile("raster_rows=1 stages=4 persistent=0 copying_waves=0 tma=0")));
  EXPECT_GE(registers, 128);
  EXPECT_LE(registers, 140);
}

}  // namespace
}  // namespace wl

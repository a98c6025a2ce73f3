// The model of loop nests on GPUs: amounts that can be counted by hand, and orders of schedules.
#include "compiler/model/gpu_cost.h"

#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/ir/text.h"
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
  double ns(const std::string& choices) const { return gpu_nest_ns(kernel(choices), machine); }

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
  EXPECT_EQ(work.waits, 1);
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

}  // namespace
}  // namespace wl

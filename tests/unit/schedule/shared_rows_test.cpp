// Kernels that run over their grid several times (passes): the rules of the verifier, and how rows are divided among
// blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/schedule/nest/row_parts.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

// Every block stores one element and, in the next pass, reads the element of the next block.
constexpr const char* kNeighbours =
    R"(kernel "k" target="cpu:generic" grid=4 threads=1 unroll=1 accumulators=1 compiler="gcc" {
  p0 = in "x" : f32 [4]
  p1 = out "y" : f32 [4]
  p2 = work@0 "left" : f32 [4]
  let next#1 = (block + 1) % 4
  %0 = load p0[block] strides [0] : f32 [1]
  store %0 p2[block] strides [0]
  pass
  %1 = load p2[next#1] strides [0] : f32 [1]
  store %1 p1[block] strides [0]
}
)";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& text) {
  const auto kernel = parse_kernel(text);
  return kernel.ok() ? "" : std::string(kernel.status().message());
}

TEST(Passes, SeeWhatAllBlocksLeft) {
  const auto kernel = parse_kernel(kNeighbours);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->passes().size(), 2u);
  EXPECT_EQ(kernel->work_bytes(), 64);
  EXPECT_EQ(kernel->scratch_bytes(), 0);
  std::vector<std::vector<double>> buffers = {{1, 2, 3, 4}, {0, 0, 0, 0}};
  ASSERT_TRUE(interpret(*kernel, buffers).ok());
  EXPECT_EQ(buffers[1], (std::vector<double>{2, 3, 4, 1}));
}

TEST(Passes, KeepNothingElse) {
  EXPECT_THAT(complaint(changed(kNeighbours, "store %1", "store %0")), HasSubstr("%0 is used before it is defined"));
  EXPECT_THAT(complaint(changed(kNeighbours, "  pass\n", "")), HasSubstr("which an earlier pass must have stored"));
  EXPECT_THAT(complaint(changed(kNeighbours, "store %0 p2[block] strides [0]\n", "")),
              HasSubstr("which an earlier pass must have stored"));
  EXPECT_THAT(complaint(changed(kNeighbours, "work@0", "scratch@0")), HasSubstr("stores nothing there"));
  EXPECT_THAT(complaint(changed(kNeighbours, "  pass\n", "  index i#2\n  for i#2 in 1 {\n    pass\n  }\n")),
              HasSubstr("a pass inside a loop"));
  EXPECT_THAT(complaint(changed(changed(kNeighbours, "  pass\n", ""), "%1 = load p2[next#1]", "%1 = load p0[next#1]")),
              HasSubstr("a workspace for one pass"));
}

// The blocks work in pairs: the block of a pair that ends last adds the elements of both blocks.
constexpr const char* kCounted =
    R"(kernel "k" target="cpu:generic" grid=4 threads=1 unroll=1 accumulators=1 compiler="gcc" {
  p0 = in "x" : f32 [4]
  p1 = out "y" : f32 [2]
  p2 = work@0 "left" : f32 [4]
  let pair#1 = (block) / 2
  %0 = load p0[block] strides [0] : f32 [1]
  store %0 p2[block] strides [0]
  pass last 2
  %1 = load p2[pair#1*2] strides [0] : f32 [1]
  %2 = load p2[pair#1*2 + 1] strides [0] : f32 [1]
  %3 = map add(%1, %2) : f32 [1]
  store %3 p1[pair#1] strides [0]
}
)";

TEST(Passes, OfTheLastBlockRunOnce) {
  const auto kernel = parse_kernel(kCounted);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->passes().size(), 2u);
  EXPECT_EQ(kernel->sweeps(), 1);
  EXPECT_EQ(print(*kernel), print(*parse_kernel(print(*kernel))));
  std::vector<std::vector<double>> buffers = {{1, 2, 3, 4}, {0, 0}};
  ASSERT_TRUE(interpret(*kernel, buffers).ok());
  EXPECT_EQ(buffers[1], (std::vector<double>{3, 7}));
  EXPECT_THAT(complaint(changed(kCounted, "grid=4", "grid=3")), HasSubstr("do not count each other so"));
  EXPECT_THAT(complaint(changed(kCounted, "grid=4", "grid=4096")), HasSubstr("do not count each other so"));
  EXPECT_THAT(complaint(changed(kCounted, "last 2", "last 2 p2[0] strides []")), HasSubstr("one thread needs no flag"));
}

// A kernel whose blocks, in clusters of two, each read the element that the other block of the cluster has stored.
constexpr const char* kCluster =
    R"(kernel "k" target="sim:cuda" grid=4 threads=32 unroll=1 accumulators=1 compiler="gcc" wave=32 team=32 teams=1 cluster=2 {
  p0 = in "x" : f32 [4]
  p1 = out "y" : f32 [4]
  p2 = cluster@0 "left" : f32 [2,1]
  let mine#2 = (block) % 2
  let next#3 = (block + 1) % 2
  %0 = load p0[block] strides [0] : f32 [1]
  store %0 p2[mine#2] strides [0]
  meet
  %1 = load p2[next#3] strides [0] : f32 [1]
  meet
  store %1 p1[block] strides [0]
}
)";

TEST(Clusters, SeeWhatTheirBlocksStored) {
  const auto kernel = parse_kernel(kCluster);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->scratch_bytes(), 64);
  std::vector<std::vector<double>> buffers = {{1, 2, 3, 4}, {0, 0, 0, 0}};
  ASSERT_TRUE(interpret(*kernel, buffers).ok());
  EXPECT_EQ(buffers[1], (std::vector<double>{2, 1, 4, 3}));
}

TEST(Clusters, MeetBeforeTheyLoadAndBeforeTheyLeave) {
  EXPECT_THAT(complaint(changed(kCluster, "  meet\n  %1", "  %1")),
              HasSubstr("no cluster barrier since this buffer was stored"));
  EXPECT_THAT(complaint(changed(kCluster, "  meet\n  store %1", "  store %1")), HasSubstr("leave while others load"));
  EXPECT_THAT(complaint(changed(kCluster, "grid=4", "grid=3")), HasSubstr("are not clusters of 2"));
  EXPECT_THAT(complaint(changed(kCluster, "[2,1]", "[4,1]")), HasSubstr("has no part for each block"));
  EXPECT_THAT(complaint(changed(kCluster, " cluster=2", "")), HasSubstr("part for each block"));
}

TEST(Parts, GiveEveryBlockSomething) {
  EXPECT_EQ(share_of(100, 8, 1), 13);
  EXPECT_EQ(share_of(100, 8, 4), 16);
  EXPECT_TRUE(shares_out(100, 8, 1));
  // In steps of 16, blocks take 16 of the 100 rows each: seven blocks take them all and the eighth gets none.
  EXPECT_FALSE(shares_out(100, 8, 16));
  EXPECT_FALSE(shares_out(9, 8, 1));
  for (int64_t extent = 1; extent < 200; ++extent)
    for (int64_t parts : {1, 2, 4, 8, 16})
      for (int64_t step : {1, 4, 16})
        if (shares_out(extent, parts, step)) {
          EXPECT_GT(extent, (parts - 1) * share_of(extent, parts, step));
          EXPECT_LE(extent, parts * share_of(extent, parts, step));
        }
}

// The first seed divides each row among several blocks if there are fewer rows than the machine can compute at the same
// time. It never does so if there are many rows.
TEST(Parts, AreTheFirstChoiceOfFewLongRows) {
  const auto first = [](const char* target, const char* text, bool small) {
    Machine machine = testing::machine_with(target);
    machine.units = 0;  // 0: the machine has the number of multiprocessors of its target
    machine.part_elements = small ? testing::kPartElements : Machine().part_elements;
    const Graph group = parse(text).value();
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    const Schedule schedule = space.schedule(space.seeds[0]);
    return schedule.has(kReductionBlocks) ? schedule[kReductionBlocks] : 0;
  };
  constexpr const char* kSum = R"(graph {
  %0 = input "x" : f32[262144] normal(0,1)
  %1 = reduce_sum %0 axes=[0] : f32[]
  output "y" %1
})";
  constexpr const char* kColumns = R"(graph {
  %0 = input "x" : f32[65536,64] normal(0,1)
  %1 = reduce_sum %0 axes=[0] : f32[64]
  output "y" %1
})";
  constexpr const char* kRows = R"(graph {
  %0 = input "x" : f32[4096,1024] normal(0,1)
  %1 = reduce_sum %0 axes=[1] : f32[4096]
  output "y" %1
})";
  for (const char* text : {kSum, kColumns}) {
    EXPECT_EQ(first("cpu:avx512", text, false), 2) << text;
    EXPECT_GE(first("cuda:sm_90a", text, false), 32) << text;
    EXPECT_GE(first("hip:gfx90a", text, false), 32) << text;
  }
  for (const char* target : {"cpu:avx512", "cuda:sm_90a", "hip:gfx90a"}) EXPECT_EQ(first(target, kRows, true), 0);
}

}  // namespace
}  // namespace wl

// How schedules move data: streaming loads, persistent blocks, and rows and tiles that are copied ahead.
#include "compiler/schedule/data_movement.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/domain/reads.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/traffic.h"

namespace wl {
namespace {

constexpr const char* kNorm = R"(graph {
  %0 = input "x" : f32[300,64] normal(0,1)
  %1 = input "r" : f32[300,64] normal(0,1)
  %2 = input "gamma" : f32[64] normal(0,1)
  %3 = add %0 %1 : f32[300,64]
  %4 = mul %3 %3 : f32[300,64]
  %5 = reduce_sum %4 axes=[1] : f32[300]
  %6 = rsqrt %5 : f32[300]
  %7 = broadcast %6 dims=[0] : f32[300,64]
  %8 = mul %3 %7 : f32[300,64]
  %9 = broadcast %2 dims=[1] : f32[300,64]
  %10 = mul %8 %9 : f32[300,64]
  output "y" %10
})";

struct Lowered {
  Graph graph;
  Domain domain;
  Kernel kernel;
};

Lowered lowered(const char* text, std::initializer_list<std::pair<Choice, int64_t>> choices) {
  const Machine machine = testing::machine_with("sim:cuda");
  Lowered out;
  out.graph = parse(text).value();
  out.domain = analyze(out.graph, machine).value();
  const Space space = space_of(out.graph, out.domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  for (const auto& [choice, value] : choices) schedule.set(choice, value);
  EXPECT_TRUE(space.legal(schedule));
  out.kernel = lower(out.graph, out.domain, schedule, machine).value();
  return out;
}

std::set<std::string> streamed(const Kernel& kernel) {
  std::set<std::string> names;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kLoad && instr.streaming) names.insert(kernel.buffers[instr.slice.buffer].name);
  });
  return names;
}

std::vector<std::string> once(const char* text) {
  const Graph graph = parse(text).value();
  const Domain domain = analyze(graph, testing::machine_with("sim:cuda")).value();
  std::vector<std::string> names;
  for (NodeId input : inputs_read_once(graph, domain)) names.push_back(graph.nodes[input].text);
  return names;
}

TEST(InputsReadOnce, AreThoseThatMoveAlongEveryLoop) {
  EXPECT_EQ(once(kNorm), (std::vector<std::string>{"x", "r"}));
  // Inputs that are not read exactly once: an input with two views, an input with overlapping windows, and an input
  // whose elements an index selects.
  EXPECT_EQ(once(R"(graph {
  %0 = input "x" : f32[40,40] normal(0,1)
  %1 = transpose %0 perm=[1,0] : f32[40,40]
  %2 = add %0 %1 : f32[40,40]
  output "y" %2
})"),
            std::vector<std::string>());
  EXPECT_EQ(once(R"(graph {
  %0 = input "x" : f32[8,22,50] normal(0,1)
  %1 = window %0 axes=[1,2] params=[3,1,1,3,1,1] : f32[8,20,48,3,3]
  %2 = reduce_sum %1 axes=[3,4] : f32[8,20,48]
  output "y" %2
})"),
            std::vector<std::string>());
  EXPECT_EQ(once(R"(graph {
  %0 = input "x" : f32[16,100] normal(0,1)
  %1 = input "label" : i64[16,1] uniform(0,100)
  %2 = take_along %0 %1 axis=[1] : f32[16,1]
  output "y" %2
})"),
            (std::vector<std::string>{"label"}));
}

TEST(StreamingLoads, AreOfInputsThatTheKernelReadsOnce) {
  EXPECT_EQ(streamed(lowered(kNorm, {}).kernel), std::set<std::string>());
  const Lowered resident = lowered(kNorm, {{kStreamLoads, 1}});
  EXPECT_EQ(streamed(resident.kernel), (std::set<std::string>{"x", "r"}));
  EXPECT_NE(print(resident.kernel).find("strides [0,1] streaming"), std::string::npos);
  EXPECT_EQ(parse_kernel(print(resident.kernel)).value(), resident.kernel);
  // If a later phase reads a row again, the row's loads have no streaming hint.
  Kernel again = lowered(kNorm, {{kRowStorage, 0}}).kernel;
  stream_loads(again, resident.graph, resident.domain);
  EXPECT_EQ(streamed(again), std::set<std::string>());
}

const Instr& only_loop(const Kernel& kernel) {
  const Instr* loop = nullptr;
  for (const Instr& instr : kernel.body)
    if (instr.op == InstrOp::kLoop) loop = &instr;
  EXPECT_NE(loop, nullptr);
  return *loop;
}

TEST(PersistentBlocks, TakeRowAfterRowAndKeepWhatRowsShare) {
  const Kernel kernel = lowered(kNorm, {{kPersistent, 1}, {kMinBlocks, 2}, {kTeam, 32}, {kTeams, 4}}).kernel;
  EXPECT_EQ(kernel.grid, 6);  // two blocks for each of three multiprocessors
  const Instr& loop = only_loop(kernel);
  std::set<std::string> inside;
  each_instr(loop.body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kLoad) inside.insert(kernel.buffers[instr.slice.buffer].name);
  });
  EXPECT_EQ(inside, (std::set<std::string>{"x", "r"}));
  EXPECT_EQ(kernel.body.front().op, InstrOp::kLoad);
  EXPECT_EQ(kernel.buffers[kernel.body.front().slice.buffer].name, "gamma");
}

// The 300 rows form 75 chunks of 4 rows, which are divided among 6 blocks: the first three blocks run 13 iterations,
// the others 12.
TEST(PersistentBlocks, ShareRowsThatDoNotDivideThem) {
  const Kernel kernel = lowered(kNorm, {{kPersistent, 1}, {kMinBlocks, 2}, {kTeam, 32}, {kTeams, 4}}).kernel;
  const std::string text = print(kernel);
  EXPECT_NE(text.find("= (block*-1 + 80) / 6"), std::string::npos) << text;
}

// If a block computes several rows, a barrier keeps the next row from overwriting shared memory that waves of the team
// still read.
TEST(PersistentBlocks, MeetAtBarriersAcrossTurns) {
  const auto barriers_of = [](int64_t persistent) {
    return testing::instrs_in(
        lowered(kNorm, {{kPersistent, persistent}, {kMinBlocks, 2}, {kVector, 1}, {kTeam, 64}, {kTeams, 2}})
            .kernel.body,
        InstrOp::kBarrier);
  };
  EXPECT_EQ(barriers_of(0), 1);
  EXPECT_EQ(barriers_of(1), 2);
}

constexpr const char* kBias = R"(graph {
  %0 = input "x" : f32[600,512] normal(0,1)
  %1 = input "bias" : f32[512] normal(0,1)
  %2 = broadcast %1 dims=[1] : f32[600,512]
  %3 = add %0 %2 : f32[600,512]
  output "y" %3
})";

// The result is four tiles wide. So the number of blocks is a multiple of four, and all tiles of a block lie in the
// same columns.
TEST(PersistentBlocks, OfTilesKeepToOneColumn) {
  const Kernel kernel =
      lowered(kBias, {{kPersistent, 1}, {kMinBlocks, 2}, {kVector, 4}, {kTeam, 32}, {kTeams, 1}}).kernel;
  EXPECT_EQ(kernel.grid, 4);
  EXPECT_EQ(kernel.buffers[kernel.body.front().slice.buffer].name, "bias") << print(kernel);
}

// The next rows are copied asynchronously while a row is computed. Each thread copies exactly what it will load, so no
// barrier is needed, and nothing is read twice.
TEST(RowsAhead, AreCopiedOnceAndNeedNoBarrier) {
  for (const int64_t ahead : {1, 2}) {
    const Kernel kernel = lowered(kNorm, {{kPersistent, ahead + 1}, {kMinBlocks, 2}, {kTeam, 32}, {kTeams, 4}}).kernel;
    SCOPED_TRACE(print(kernel));
    const Instr& loop = only_loop(kernel);
    int copies = 0, waits = 0;
    for (const Instr& instr : loop.body) {
      copies += instr.op == InstrOp::kAsyncLoad ? 1 : 0;
      if (instr.op != InstrOp::kWait) continue;
      EXPECT_EQ(instr.pending, ahead);
      ++waits;
    }
    EXPECT_EQ(copies, 2);  // one copy for each of the inputs x and r
    EXPECT_EQ(waits, 1);
    EXPECT_EQ(testing::instrs_in(kernel.body, InstrOp::kBarrier), 0);
    const std::vector<int64_t> moved = testing::elements_moved(kernel);
    EXPECT_EQ(moved[0], 300 * 64);
    EXPECT_EQ(moved[1], 300 * 64);
    EXPECT_EQ(parse_kernel(print(kernel)).value(), kernel);
  }
}

// If rows are walked in tiles, every phase copies later tiles while it computes a tile. Threads copy exactly what they
// will load, so no barrier is needed, and nothing is read twice.
TEST(TilesAhead, AreCopiedOnceInEveryPhaseAndNeedNoBarrier) {
  constexpr const char* kLong = R"(graph {
  %0 = input "x" : f32[6,4100] normal(0,1)
  %1 = mul %0 %0 : f32[6,4100]
  %2 = reduce_sum %1 axes=[1] : f32[6]
  %3 = rsqrt %2 : f32[6]
  %4 = broadcast %3 dims=[0] : f32[6,4100]
  %5 = mul %0 %4 : f32[6,4100]
  output "y" %5
})";
  const auto with = [&](int64_t ahead) {
    return lowered(kLong, {{kRowStorage, kRowRecomputed},
                           {kTeam, 128},
                           {kTeams, 1},
                           {kVector, 4},
                           {kTileVectors, 2},
                           {kStreamLoads, 0},
                           {kTilesAhead, ahead}})
        .kernel;
  };
  const Kernel plain = with(0);
  for (const int64_t ahead : {1, 2, 4}) {
    const Kernel kernel = with(ahead);
    SCOPED_TRACE(print(kernel));
    int copies = 0, waits = 0;
    each_instr(kernel.body, [&](const Instr& instr) {
      if (instr.op != InstrOp::kLoop) return;
      for (const Instr& inner : instr.body) {
        copies += inner.op == InstrOp::kAsyncLoad ? 1 : 0;
        waits += inner.op == InstrOp::kWait && inner.pending == ahead ? 1 : 0;
      }
    });
    EXPECT_EQ(copies, 2);  // one copy in each of the two phases
    EXPECT_EQ(waits, 2);
    EXPECT_EQ(testing::instrs_in(kernel.body, InstrOp::kBarrier), testing::instrs_in(plain.body, InstrOp::kBarrier));
    for (BufferId global : {0, 1})
      EXPECT_EQ(testing::elements_moved(kernel)[global], testing::elements_moved(plain)[global]);
    EXPECT_EQ(parse_kernel(print(kernel)).value(), kernel);
  }
}

TEST(StreamingLoads, OfAnythingElseAreRefused) {
  Kernel kernel = lowered(kNorm, {{kStreamLoads, 1}}).kernel;
  for (KernelBuffer& buffer : kernel.buffers) buffer.output = true;
  EXPECT_TRUE(absl::IsInternal(verify(kernel)));
}

}  // namespace
}  // namespace wl

// The pipelining pass on small hand-made loops keeps their results, and inserts no wait or slot that is not needed.
#include "compiler/kernel/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/kernel/barriers.h"
#include "compiler/kernel/verify.h"
#include "tests/unit/kernel/plain_loop.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/traffic.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using testing::instrs_in;
using testing::PlainLoop;
using testing::values_of;

Kernel pipelined(PlainLoop& plain, int64_t stages, int64_t registers = 1) {
  Kernel kernel = plain.kernel();
  const absl::Status status = pipeline(kernel, {plain.loop, {{PlainLoop::kShared, plain.copied}}, stages, registers});
  EXPECT_TRUE(status.ok()) << status;
  insert_barriers(kernel);
  return kernel;
}

const Instr* loop_of(const std::vector<Instr>& body, VarId var) {
  for (const Instr& instr : body) {
    if (instr.op != InstrOp::kLoop) continue;
    if (instr.var == var) return &instr;
    if (const Instr* inside = loop_of(instr.body, var)) return inside;
  }
  return nullptr;
}

// Returns a loop of `steps` steps in each of the variants that these tests use.
std::vector<PlainLoop> loops(int64_t steps) {
  std::vector<PlainLoop> out;
  for (const bool copied : {true, false})
    for (const bool known : {true, false})
      for (const bool own : {true, false})
        for (const bool tail : {false, true})
          for (const int64_t outer : {0, 2}) {
            PlainLoop& plain = out.emplace_back();
            plain.steps = steps;
            plain.copied = copied;
            plain.known = known;
            plain.own = own;
            plain.tail = tail;
            plain.outer = outer;
          }
  return out;
}

TEST(PipelinedLoops, MeanWhatTheyMeant) {
  for (int64_t steps = 0; steps <= 7; ++steps)
    for (PlainLoop& plain : loops(steps)) {
      Kernel before = plain.kernel();
      insert_barriers(before);
      const std::vector<double> expected = values_of(before);
      for (int64_t stages = 1; stages <= 5; ++stages) {
        const Kernel kernel = pipelined(plain, stages);
        SCOPED_TRACE(cat(stages, " stages, ", steps, " steps\n", print(kernel)));
        ASSERT_TRUE(verify(kernel).ok()) << verify(kernel);
        ASSERT_TRUE(check_barriers(kernel).ok()) << check_barriers(kernel);
        ASSERT_EQ(values_of(kernel), expected);
        ASSERT_EQ(parse_kernel(print(kernel)).value(), kernel);
        if (plain.copied) {
          ASSERT_EQ(testing::elements_moved(kernel)[0], testing::elements_moved(before)[0]);
        }
      }
    }
}

// Returns variants of the loop in which each step reads its slot of shared memory several times.
std::vector<PlainLoop> loops_of_groups(int64_t steps) {
  std::vector<PlainLoop> out;
  for (PlainLoop plain : loops(steps))
    for (const auto& [inner, groups] : {std::pair{1, 2}, {1, 4}, {2, 2}, {3, 4}}) {
      if (plain.own) continue;
      plain.inner = inner;
      plain.groups = groups;
      out.push_back(plain);
    }
  return out;
}

TEST(PipelinedReads, MeanWhatTheyMeant) {
  for (int64_t steps = 0; steps <= 7; ++steps)
    for (PlainLoop& plain : loops_of_groups(steps)) {
      Kernel before = plain.kernel();
      insert_barriers(before);
      const std::vector<double> expected = values_of(before);
      for (int64_t stages = 1; stages <= 5; ++stages) {
        const Kernel kernel = pipelined(plain, stages, 2);
        SCOPED_TRACE(cat(stages, " stages, ", steps, " steps\n", print(kernel)));
        ASSERT_TRUE(verify(kernel).ok()) << verify(kernel);
        ASSERT_TRUE(check_barriers(kernel).ok()) << check_barriers(kernel);
        ASSERT_EQ(values_of(kernel), expected);
        ASSERT_EQ(parse_kernel(print(kernel)).value(), kernel);
        const Instr* loop = loop_of(kernel.body, plain.loop);
        if (stages > 1 && std::min(stages, steps) > 1) {
          ASSERT_EQ(instrs_in(loop->body, InstrOp::kBarrier), 1);
        }
      }
    }
}

TEST(PipelinedReads, NeedAnEvenNumberOfGroups) {
  const auto refusal = [](int64_t inner, int groups, const std::function<void(std::vector<Instr>&)>& change) {
    PlainLoop plain;
    plain.inner = inner;
    plain.groups = groups;
    Kernel kernel = plain.kernel();
    change(kernel.body[1].body);
    const Kernel before = kernel;
    const absl::Status status = pipeline(kernel, {plain.loop, {{PlainLoop::kShared, true}}, 3, 2});
    EXPECT_EQ(kernel == before, !status.ok());
    return std::string(status.message());
  };
  const auto nothing = [](std::vector<Instr>&) {};
  EXPECT_EQ(refusal(1, 2, nothing), "");
  EXPECT_THAT(refusal(1, 1, nothing), HasSubstr("two sets"));
  EXPECT_THAT(refusal(4, 3, nothing), HasSubstr("two sets"));
  EXPECT_THAT(refusal(4, 2, [](std::vector<Instr>& b) { b[2].trips = {affine(kBlockVar)}; }),
              HasSubstr("unknown length"));
  EXPECT_THAT(refusal(1, 2, [](std::vector<Instr>& b) { b.push_back(wait_instr(0)); }), HasSubstr("alternate"));
}

TEST(PipelinedLoops, HaveOneBarrierAStepAndNoneForWhatThreadsCopyThemselves) {
  for (PlainLoop& plain : loops(6)) {
    if (plain.tail) continue;
    for (int64_t stages = 2; stages <= 5; ++stages) {
      const Kernel kernel = pipelined(plain, stages);
      SCOPED_TRACE(print(kernel));
      const Instr* steps = loop_of(kernel.body, plain.loop);
      ASSERT_NE(steps, nullptr);
      EXPECT_EQ(instrs_in(steps->body, InstrOp::kBarrier), plain.own ? 0 : 1);
      EXPECT_EQ(instrs_in(steps->body, InstrOp::kAsyncLoad), plain.copied ? 1 : 0);
      EXPECT_EQ(instrs_in(kernel.body, InstrOp::kCommit), plain.copied ? stages : 0);
      if (!plain.copied) continue;
      const bool waits_first = steps->body[0].op == InstrOp::kWait;
      EXPECT_EQ(waits_first, !plain.own);
      EXPECT_EQ(kernel.buffers[PlainLoop::kShared].shape, (std::vector<int64_t>{stages, PlainLoop::kTeam}));
    }
  }
}

// Removes or changes one wait, barrier, commit or slot of a pipelined loop at a time, and expects each time that
// check_barriers() reports a hazard or that the results are wrong.
void expect_all_needed(std::vector<PlainLoop> plains, int64_t registers, int least) {
  int broken = 0;
  for (PlainLoop& plain : plains) {
    for (int64_t stages = 2; stages <= 5; ++stages) {
      const Kernel whole = pipelined(plain, stages, registers);
      const std::vector<double> expected = values_of(whole);
      const auto expect_wrong = [&](const Kernel& kernel) {
        ++broken;
        if (!check_barriers(kernel).ok()) return;
        const std::vector<double> values = values_of(kernel);
        EXPECT_NE(values, expected) << print(kernel);
      };
      const auto damage_each = [&](InstrOp op, const testing::Damage& damage) {
        for (const Kernel& kernel : testing::each_damaged(whole, op, damage)) expect_wrong(kernel);
      };
      damage_each(InstrOp::kWait, [](std::vector<Instr>& body, size_t i) { ++body[i].pending; });
      damage_each(InstrOp::kWait, testing::erase_instr);
      damage_each(InstrOp::kBarrier, testing::erase_instr);
      damage_each(InstrOp::kCommit, testing::erase_instr);
      for (size_t v = 0; v < whole.vars.size(); ++v) {
        if (whole.vars[v].mod != stages) continue;
        Kernel kernel = whole;
        ++kernel.vars[v].of[0].base;
        expect_wrong(kernel);
      }
    }
  }
  EXPECT_GT(broken, least);
}

TEST(PipelinedLoops, NeedEveryWaitAndSlot) {
  expect_all_needed(loops(6), 1, 500);
}

TEST(PipelinedReads, NeedEveryWaitAndSlot) {
  expect_all_needed(loops_of_groups(6), 2, 1000);
}

TEST(PipelinedLoops, AreRefusedWhereLoadsCannotRunAhead) {
  // The loop's body is: load, store, load, map.
  const auto refusal = [](bool copied, const std::function<void(Kernel&, std::vector<Instr>&)>& change) {
    PlainLoop plain;
    plain.copied = copied;
    Kernel kernel = plain.kernel();
    change(kernel, kernel.body[1].body);
    const Kernel before = kernel;
    const absl::Status status = pipeline(kernel, {plain.loop, {{PlainLoop::kShared, true}}, 3});
    EXPECT_EQ(kernel == before, !status.ok());
    return std::string(status.message());
  };
  using Body = std::vector<Instr>;
  EXPECT_EQ(refusal(true, [](Kernel&, Body&) {}), "");
  EXPECT_THAT(refusal(false, [](Kernel&, Body&) {}), HasSubstr("as it is"));
  EXPECT_THAT(refusal(true,
                      [](Kernel&, Body& b) {
                        b[1].guards.push_back({fixed(0), {1}, 8});
                      }),
              HasSubstr("as it is"));
  EXPECT_THAT(refusal(true, [](Kernel&, Body& b) { std::swap(b[1], b[2]); }), HasSubstr("before it is filled"));
  EXPECT_THAT(refusal(true, [](Kernel&, Body& b) { b[3].args[1] = b[0].result; }), HasSubstr("only the buffer"));
  EXPECT_THAT(refusal(true,
                      [](Kernel&, Body& b) {
                        b.push_back(b[1]);
                        b.back().args = {b[3].result};
                      }),
              HasSubstr("an earlier iteration"));
  EXPECT_THAT(refusal(true,
                      [](Kernel&, Body& b) {
                        b[0].slice.buffer = 1;
                        b.push_back(store_instr(b[3].result, {1, fixed(0), {1}}, false));
                      }),
              HasSubstr("stores what it loads"));
  EXPECT_THAT(refusal(true,
                      [](Kernel& k, Body& b) {
                        Instr last = b[2];
                        k.body.insert(k.body.begin() + 2, std::move(last));
                      }),
              HasSubstr("what the loop leaves"));
  EXPECT_THAT(refusal(true, [](Kernel& k, Body&) { k.buffers.push_back(k.buffers[PlainLoop::kShared]); }),
              HasSubstr("shares its memory"));
  PlainLoop plain;
  Kernel kernel = plain.kernel();
  EXPECT_TRUE(absl::IsInvalidArgument(pipeline(kernel, {kTeamVar, {}, 2})));
}

}  // namespace
}  // namespace wl

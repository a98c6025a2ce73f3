// Asynchronous copies to shared memory: where the verifier allows them, and what lowering generates.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/text.h"
#include "compiler/kernel/barriers.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/traffic.h"

namespace wl {
namespace {

using testing::instrs_in;

constexpr const char* kProduct = R"(graph {
  %0 = input "a" : f32[64,200] normal(0,1)
  %1 = input "b" : f32[200,64] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[64,64]
  output "y" %2
})";

Kernel product(int64_t stages, const char* text = kProduct, int64_t registers = 1) {
  const Machine machine = testing::machine_with("sim:cuda");
  const Graph graph = parse(text).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  for (const Choice side : {kTileRows, kTileColumns}) schedule.set(side, 64);
  for (const Choice side : {kThreadRows, kThreadColumns}) schedule.set(side, 4);
  schedule.set(kStepK, 16);
  schedule.set(kAsyncCopies, 1);
  schedule.set(kStages, stages);
  schedule.set(kRegisterStages, registers);
  EXPECT_TRUE(space.legal(schedule));
  return lower(graph, domain, schedule, machine).value();
}

const Instr& steps_of(const Kernel& kernel) {
  for (const Instr& instr : kernel.body)
    if (instr.op == InstrOp::kLoop && kernel.vars[instr.var].name == "step") return instr;
  ADD_FAILURE() << print(kernel);
  return kernel.body[0];
}

TEST(AsyncCopies, NeedOneBarrierAStep) {
  for (const int64_t stages : {2, 3, 4}) {
    const Kernel kernel = product(stages);
    SCOPED_TRACE(print(kernel));
    const Instr& steps = steps_of(kernel);
    EXPECT_EQ(instrs_in(steps.body, InstrOp::kBarrier), 1);
    EXPECT_EQ(instrs_in(steps.body, InstrOp::kAsyncLoad), 2);
    EXPECT_EQ(steps.body[0].op, InstrOp::kWait);
    EXPECT_EQ(steps.body[0].pending, stages - 2);
    EXPECT_EQ(steps.body[1].op, InstrOp::kBarrier);
    // A kernel with n stages commits copies in n places: n - 1 before the loop over the steps of k, and one in the
    // loop.
    EXPECT_EQ(instrs_in(kernel.body, InstrOp::kCommit), stages);
    EXPECT_EQ(parse_kernel(print(kernel)).value(), kernel);
    // Each element of the operands is read exactly once, so no copy reaches beyond the last step of k.
    const std::vector<int64_t> moved = testing::elements_moved(kernel);
    EXPECT_EQ(moved[0], 64 * 200);
    EXPECT_EQ(moved[1], 64 * 200);
  }
}

TEST(AsyncCopies, AreMissedWhereNoWaitOrBarrierCoversThem) {
  for (const int64_t stages : {2, 3, 4}) {
    const Kernel whole = product(stages);
    ASSERT_TRUE(check_barriers(whole).ok()) << check_barriers(whole);
    int broken = 0;
    const auto expect_broken = [&](InstrOp op, const testing::Damage& damage) {
      for (const Kernel& kernel : testing::each_damaged(whole, op, damage)) {
        EXPECT_TRUE(absl::IsInternal(check_barriers(kernel))) << print(kernel);
        ++broken;
      }
    };
    expect_broken(InstrOp::kWait, [](std::vector<Instr>& body, size_t i) { ++body[i].pending; });
    expect_broken(InstrOp::kWait, testing::erase_instr);
    expect_broken(InstrOp::kBarrier, testing::erase_instr);
    EXPECT_GT(broken, 5);
  }
}

// Each step of k ends by reading the first values of the next step from shared memory, and does so after the only
// barrier in the step.
TEST(RegisterStages, LetNoStepBeginWithARead) {
  for (const int64_t stages : {2, 3, 5}) {
    const Kernel kernel = product(stages, kProduct, 2);
    SCOPED_TRACE(print(kernel));
    const Instr& steps = steps_of(kernel);
    EXPECT_EQ(instrs_in(steps.body, InstrOp::kBarrier), 1);
    EXPECT_EQ(instrs_in(steps.body, InstrOp::kAsyncLoad), 2);
    EXPECT_EQ(steps.body[0].op, InstrOp::kAsyncLoad);
    const auto wait = std::find_if(steps.body.begin(), steps.body.end(),
                                   [](const Instr& instr) { return instr.op == InstrOp::kWait; });
    ASSERT_NE(wait, steps.body.end());
    EXPECT_EQ(wait->pending, stages - 2);
    EXPECT_EQ((wait + 1)->op, InstrOp::kBarrier);
    EXPECT_EQ((wait + 2)->op, InstrOp::kLoad);
    const std::vector<int64_t> moved = testing::elements_moved(kernel);
    EXPECT_EQ(moved[0], 64 * 200);
    EXPECT_EQ(moved[1], 64 * 200);
  }
}

// An operand that needs elementwise work is copied through registers, but into the same slots of the ring buffer as the
// other operand, which is copied asynchronously.
TEST(AsyncCopies, AreOfOperandsThatNeedNoWork) {
  const Kernel kernel = product(3, R"(graph {
  %0 = input "a" : f32[64,200] normal(0,1)
  %1 = input "b" : f32[200,64] normal(0,1)
  %2 = exp %0 : f32[64,200]
  %3 = contract %2 %1 "mk,kn->mn" : f32[64,64]
  output "y" %3
})");
  const Instr& steps = steps_of(kernel);
  EXPECT_EQ(instrs_in(steps.body, InstrOp::kAsyncLoad), 1);
  EXPECT_EQ(instrs_in(steps.body, InstrOp::kStore), 1);
  EXPECT_EQ(instrs_in(steps.body, InstrOp::kBarrier), 1);
  const Machine machine = testing::machine_with("cuda:sm_80");
  const Graph half = parse(R"(graph {
  %0 = input "a" : f16[64,200] normal(0,1)
  %1 = input "b" : f16[200,64] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f16[64,64]
  output "y" %2
})")
                         .value();
  const Space space = space_of(half, analyze(half, machine).value(), machine).value();
  for (const Axis& axis : space.axes) EXPECT_TRUE(axis.name != "async" || axis.values.size() == 1);
}

TEST(AsyncCopies, AreRefusedElsewhere) {
  const Kernel whole = product(2);
  const auto broken = [&](const std::function<void(Kernel&, Instr&)>& damage) {
    Kernel kernel = whole;
    testing::each_of(kernel, InstrOp::kAsyncLoad, [&](Instr& instr) { damage(kernel, instr); });
    return verify(kernel);
  };
  EXPECT_TRUE(absl::IsInternal(broken([](Kernel&, Instr& i) { std::swap(i.slice, i.into); })));
  EXPECT_TRUE(absl::IsInternal(broken([](Kernel& k, Instr& i) { k.buffers[i.slice.buffer].output = true; })));
  EXPECT_TRUE(absl::IsInternal(broken([](Kernel& k, Instr& i) { k.tiles[i.args[0]].dtype = DType::f64; })));
  EXPECT_TRUE(absl::IsInternal(broken([](Kernel&, Instr& i) { i.into.strides = {1}; })));
}

}  // namespace
}  // namespace wl

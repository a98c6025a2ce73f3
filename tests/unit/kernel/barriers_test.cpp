// Lowering inserts a barrier for every hazard between threads of a block. For a ring buffer it inserts only the
// barriers that the ring's slots need.
#include "compiler/kernel/barriers.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

constexpr const char* kProduct = R"(graph {
  %0 = input "a" : f32[64,128] normal(0,1)
  %1 = input "b" : f32[128,64] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[64,64]
  output "y" %2
})";

Kernel product_in(int64_t stages, int64_t unroll) {
  const Machine machine = testing::machine_with("sim:cuda");
  const Graph graph = parse(kProduct).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  schedule.set(kStepK, 16);
  schedule.set(kStages, stages);
  schedule.set(kUnrollK, unroll);
  return lower(graph, domain, schedule, machine).value();
}

// Adds to `barriers[d]` the number of barriers in loops at nesting depth d.
void count(const std::vector<Instr>& body, size_t depth, std::vector<int>& barriers) {
  barriers.resize(std::max(barriers.size(), depth + 1));
  for (const Instr& instr : body) {
    barriers[depth] += instr.op == InstrOp::kBarrier;
    if (instr.op == InstrOp::kLoop) count(instr.body, depth + 1, barriers);
  }
}
std::vector<int> barriers_of(const Kernel& kernel) {
  std::vector<int> out;
  count(kernel.body, 0, out);
  return out;
}

void erase_barriers(std::vector<Instr>& body) {
  std::erase_if(body, [](const Instr& instr) { return instr.op == InstrOp::kBarrier; });
  for (Instr& instr : body) erase_barriers(instr.body);
}

TEST(Barriers, OneAStepWhereStagesTurn) {
  for (int64_t unroll : {2, 16}) {  // 16 unrolls the loop over k within a step completely
    const std::vector<int> twice = barriers_of(product_in(1, unroll)), once = barriers_of(product_in(2, unroll));
    EXPECT_EQ(twice[0], 0);
    EXPECT_EQ(twice[1], 2);
    EXPECT_EQ(once[0], 0);
    EXPECT_EQ(once[1], 1);
    for (size_t depth = 2; depth < twice.size(); ++depth) EXPECT_EQ(twice[depth] + once[depth], 0);
  }
}

TEST(Barriers, AreMissedWhereSlotsMeet) {
  for (int64_t stages : {1, 2}) {
    Kernel kernel = product_in(stages, 8);
    EXPECT_TRUE(check_barriers(kernel).ok());
    erase_barriers(kernel.body);
    EXPECT_TRUE(absl::IsInternal(check_barriers(kernel)));
  }
  // After this change, the next step is copied into the slot of the current step, so the copies overwrite operands
  // that some threads still read.
  Kernel kernel = product_in(2, 8);
  for (Var& var : kernel.vars)
    if (var.name == "next_slot") var.of[0].base = 2;
  EXPECT_TRUE(absl::IsInternal(check_barriers(kernel)));
}

// A swizzle of shared memory that moves elements out of their slot makes the slots of a ring buffer overlap.
TEST(Barriers, AreMissedWhereASwizzleLeavesItsSlot) {
  Kernel kernel = product_in(2, 8);
  const auto swizzled = [&](Swizzle swizzle) {
    for (KernelBuffer& buffer : kernel.buffers)
      if (buffer.level == Level::kShared) buffer.swizzle = swizzle;
    return check_barriers(kernel);
  };
  EXPECT_TRUE(swizzled({}).ok());
  EXPECT_TRUE(swizzled({2, 2, 2}).ok());
  EXPECT_TRUE(absl::IsInternal(swizzled({2, 20, 2})));
}

}  // namespace
}  // namespace wl

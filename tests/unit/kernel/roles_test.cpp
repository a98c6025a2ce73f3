// Loops whose copies to shared memory are made by threads that do nothing else (copiers). Such loops keep their
// results, and verify() rejects them if a phase (an mbarrier phase, by which copiers and computing threads wait for
// each other) is missing or wrong.
#include "compiler/kernel/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/kernel/barriers.h"
#include "compiler/kernel/pipeline/pipeline.h"
#include "tests/unit/kernel/plain_loop.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

using testing::each_place;
using ::testing::HasSubstr;
using testing::instrs_in;
using testing::PlainLoop;
using testing::values_of;

PlainLoop plain_of(int64_t steps, int64_t outer = 0, bool own = false) {
  PlainLoop plain;
  plain.steps = steps;
  plain.outer = outer;
  plain.own = own;
  return plain;
}

Kernel plain_with_copiers(PlainLoop& plain) {
  Kernel kernel = plain.kernel();
  kernel.copiers = PlainLoop::kTeam;
  kernel.threads += kernel.copiers;
  return kernel;
}

// Pipelines the loop with copiers. If there is a loop around it, the numbers of phases continue from one iteration of
// that outer loop to the next; without `go_on` they start at 0 again in each, which verify() must refuse.
absl::StatusOr<Kernel> alongside(PlainLoop& plain, int64_t stages, bool go_on = true) {
  Kernel kernel = plain_with_copiers(plain);
  Pipeline how{plain.loop, {{PlainLoop::kShared, plain.copied}}, stages};
  how.alongside = true;
  if (plain.outer > 0 && go_on) how.before = affine(plain.loop - 1, plain.steps);
  WL_RETURN_IF_ERROR(pipeline(kernel, how));
  insert_barriers(kernel);
  return kernel;
}

TEST(Copiers, MeanWhatWasMeant) {
  for (int64_t steps = 2; steps <= 11; ++steps)
    for (const int64_t outer : {0, 2, 3})
      for (const bool own : {false, true})
        for (int64_t stages = 2; stages <= 5; ++stages) {
          PlainLoop plain = plain_of(steps, outer, own);
          Kernel without = plain.kernel();
          insert_barriers(without);
          const auto kernel = alongside(plain, stages);
          ASSERT_TRUE(kernel.ok()) << kernel.status();
          SCOPED_TRACE(cat(stages, " stages, ", steps, " steps\n", print(*kernel)));
          ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel);
          ASSERT_EQ(values_of(*kernel), values_of(without));
          ASSERT_EQ(parse_kernel(print(*kernel)).value(), *kernel);
          EXPECT_EQ(instrs_in(kernel->body, InstrOp::kBarrier), 0);
        }
}

// verify() refuses a kernel if an instruction that arrives at a phase or waits for one is missing, names the wrong
// element of the buffer of phases, names the wrong buffer, or has the wrong parity.
TEST(Copiers, NeedTheirPhases) {
  PlainLoop plain = plain_of(9, 2);
  const Kernel kernel = alongside(plain, 3).value();
  ASSERT_TRUE(verify(kernel).ok()) << verify(kernel);
  const auto refused = [&](const std::function<void(std::vector<Instr>&, size_t)>& change) {
    int phases = 0;
    for (int wanted = 0, met = 1; wanted < met; ++wanted) {
      Kernel changed = kernel;
      met = 0;
      std::string what;
      each_place(changed.body, [&](std::vector<Instr>& body, size_t at) {
        if (!info(body[at].op).has(Operand::phase) || met++ != wanted) return;
        what = print(changed, body[at]);
        change(body, at);
      });
      if (what.empty()) break;
      EXPECT_FALSE(verify(changed).ok()) << what << "\n" << print(changed);
      ++phases;
    }
    EXPECT_EQ(phases, 4);
  };
  refused(testing::erase_instr);
  refused([](std::vector<Instr>& body, size_t at) { body[at].slice.offset = fixed(0); });
  refused([](std::vector<Instr>& body, size_t at) { ++body[at].slice.buffer; });
  refused([](std::vector<Instr>& body, size_t at) {
    if (body[at].op == InstrOp::kAwait) return void(++body[at].parity.base);
    testing::erase_instr(body, at);
  });
  const auto again = alongside(plain, 4, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(verify(*again).message(), HasSubstr("phase"));
}

TEST(Copiers, AreRefusedWhereTheyCannotCopy) {
  for (const bool known : {false, true}) {
    PlainLoop plain;
    plain.known = known;
    plain.copied = !known;
    const auto kernel = alongside(plain, 3);
    EXPECT_THAT(kernel.status().message(), HasSubstr("has no copiers"));
  }
  PlainLoop plain;
  EXPECT_THAT(alongside(plain, 1).status().message(), HasSubstr("has no copiers"));
}

TEST(Copiers, DoNothingElse) {
  PlainLoop plain;
  const Kernel kernel = alongside(plain, 2).value();
  const auto message = [&](const std::function<void(Kernel&)>& change) {
    Kernel changed = kernel;
    change(changed);
    return std::string(verify(changed).message());
  };
  const auto filled = [](Kernel& changed) -> KernelBuffer& { return changed.buffers[PlainLoop::kShared + 1]; };
  EXPECT_THAT(message([&](Kernel& changed) { ++filled(changed).arrivals; }), HasSubstr("32 arrive, not 33"));
  EXPECT_THAT(message([&](Kernel& changed) { filled(changed).arrivals = 0; }), HasSubstr("that has arrivals"));
  EXPECT_THAT(message([&](Kernel& changed) { filled(changed).byte_offset = 0; }), HasSubstr("overlap"));
  EXPECT_THAT(message([](Kernel& changed) { changed.threads -= std::exchange(changed.copiers, 0); }),
              HasSubstr("no copiers"));
  EXPECT_THAT(message([](Kernel& changed) {
                std::vector<Instr>& steps = changed.body[1].body;
                steps[0].body.push_back(steps.back());
              }),
              HasSubstr("the other role arrives"));
  EXPECT_THAT(message([](Kernel& changed) {
                std::vector<Instr>& steps = changed.body[1].body;
                steps[0].body.push_back(changed.body[0]);
              }),
              HasSubstr("copiers only copy"));
}

}  // namespace
}  // namespace wl

// Memory that is reserved for plans: requests beyond a caller's share or beyond the total are refused, and finished
// jobs release their memory.
#include "server/engine/bounds/plan_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

TEST(PlanMemory, IsForEveryCaller) {
  PlanMemory memory(1000);
  EXPECT_THAT(std::string(memory.take("a", 751).status().message()), HasSubstr("--plan-memory-gb"));
  auto a = memory.take("a", 750);
  ASSERT_TRUE(a.ok());
  EXPECT_THAT(std::string(memory.take("a", 1).status().message()), HasSubstr("the open jobs of this caller"));
  auto b = memory.take("b", 200);
  ASSERT_TRUE(b.ok());
  EXPECT_THAT(std::string(memory.take("c", 51).status().message()), HasSubstr("the open jobs of all"));
  EXPECT_EQ(memory.held(), 950);
  a->reset();
  EXPECT_EQ(memory.held(), 200);
  EXPECT_TRUE(memory.take("c", 51).ok());
}

TEST(PlanMemory, IsHeldUntilAJobIsDone) {
  PlanMemory memory(1000);
  memory.keep(7, *memory.take("a", 500));
  memory.keep_anyway(8, 5000);
  EXPECT_EQ(memory.held(), 5500);
  EXPECT_FALSE(memory.take("b", 1).ok()) << "a job of before the start takes more than there is";
  memory.release_if([](int64_t id) { return id == 8; });
  EXPECT_EQ(memory.held(), 500);
  EXPECT_TRUE(memory.take("b", 1).ok());
}

TEST(PlanMemory, WithoutALimitIsEnough) {
  PlanMemory memory(0);
  EXPECT_TRUE(memory.take("a", int64_t{1} << 50).ok());
}

TEST(PlanMemory, GrowsWithTheGraph) {
  EXPECT_GT(default_plan_memory(), int64_t{1} << 26);
  EXPECT_GT(plan_bytes(std::string(10'000, '\n')), int64_t{200} << 20);
  EXPECT_GT(plan_bytes(std::string(100'000, '\n')), int64_t{800} << 20);
  EXPECT_LT(plan_bytes(kGraph), 1 << 20);
}

TEST(PlanMemory, RefusesAGraphThatIsTooLargeAndGoesOn) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.plan_memory_bytes = 1 << 20;
  Service service(options);
  FakeWorker one(service.channel, "one");
  std::string large = "graph {\n  %0 = input \"x\" : f32[64,32] normal(0,1)\n";
  for (int i = 0; i < 60; ++i) append(&large, "  %", i + 1, " = exp %", i, " : f32[64,32]\n");
  large += "  output \"y\" %60\n}\n";
  EXPECT_TRUE(absl::IsResourceExhausted(service.create("large", trials(8), large).status()));
  EXPECT_EQ(service.run("small", trials(8)).state, JobState::kSucceeded);
  EXPECT_EQ(service.run("other", trials(8)).state, JobState::kSucceeded) << "what is done takes nothing";
}

}  // namespace
}  // namespace wl

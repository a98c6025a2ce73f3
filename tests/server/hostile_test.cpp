// A hostile worker beside honest ones, and alone: what it claims is not promoted, run or written
// (docs/decisions/0028-confirmed-records.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/outside.h"
#include "tests/server/scratch.h"
#include "tests/server/service.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

// A candidate that was "measured" faster than any machine can be is an error and no winner, and search goes on.
TEST(Hostile, TimesBelowTheFloorAreErrors) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const std::string fast = "plan ops=4 number=1";
  std::atomic<int> claims = 0;
  FakeWorker worker(service.channel, "w", {.judge = [&](const Batch&, Trial* trial) {
                      if (trial->plan != fast) return;
                      trial->outcome = Outcome::kCorrect;
                      trial->samples_ns = {900, 1, 900, 900};  // one false sample among honest ones
                      ++claims;
                    }});
  const Job job = service.run("r", trials(32));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_GT(claims, 0);
  for (const GroupResult& group : job.result->groups) {
    EXPECT_NE(group.plan, fast);
    EXPECT_GT(group.best_ns, 100);
  }
  EXPECT_EQ(claims, 1) << "it is no finalist, so nobody measures it again";
  const Rows rows =
      rows_of(scratch.path("a.db"), cat("SELECT DISTINCT message, samples_ns FROM trials WHERE plan = '", fast, "'"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(rows[0][0], HasSubstr("not believed: a sample of 1 ns"));
  EXPECT_EQ(rows[0][1], "");
}

}  // namespace
}  // namespace wl

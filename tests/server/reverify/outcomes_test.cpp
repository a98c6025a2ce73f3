// The outcome of verifying a winning kernel again (kept, moved or lost) follows from its records before and after, and
// from the trials of the verification.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/jobs/reverify.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

KernelRecord record_of(const std::string& plan, int64_t ns) {
  KernelRecord record;
  record.plan = plan;
  record.default_plan = "d";
  record.samples_ns = {ns, ns, ns};
  return record;
}

PhaseTrial final_of(const std::string& plan, Outcome outcome) {
  PhaseTrial item;
  item.phase = 1;
  item.trial.plan = plan;
  item.trial.outcome = outcome;
  return item;
}

TEST(ReverifiedAs, FollowsFromWhatWasMeasured) {
  const KernelRecord before = record_of("p", 1000);
  const auto as = [&](const std::optional<KernelRecord>& now, const std::vector<PhaseTrial>& trials) {
    return reverified_as(before, now, trials, "").outcome;
  };
  const std::vector<PhaseTrial> right = {final_of("p", Outcome::kCorrect)}, wrong = {final_of("p", Outcome::kTimeout)};
  EXPECT_EQ(as(record_of("p", 1000), right), Reverified::kKept);
  EXPECT_EQ(as(record_of("p", 1140), right), Reverified::kKept) << "noise";
  EXPECT_EQ(as(record_of("p", 1160), right), Reverified::kMoved);
  EXPECT_EQ(as(record_of("p", 800), right), Reverified::kMoved);
  EXPECT_EQ(as(record_of("d", 990), right), Reverified::kMoved);
  EXPECT_EQ(as(record_of("q", 990), {}), Reverified::kMoved) << "another job has searched it";
  EXPECT_EQ(as(std::nullopt, wrong), Reverified::kLost);
  EXPECT_EQ(as(record_of("q", 990), wrong), Reverified::kLost) << "and found another";
  EXPECT_EQ(as(std::nullopt, {}), Reverified::kLost);
  EXPECT_THAT(reverified_as(before, std::nullopt, {}, "").message, HasSubstr("cannot make its plan"));
  EXPECT_THAT(reverified_as(before, std::nullopt, right, "they do not agree").message, HasSubstr("do not agree"));
}

}  // namespace
}  // namespace wl

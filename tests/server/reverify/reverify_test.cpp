// Winners are verified again after a compiler or driver has changed: their outcomes, and that no wrong kernel is
// served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/server/reverify/upgraded.h"

namespace wl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(Reverify, WinnersAreKeptByThemselvesWhenAWorkerHasANewCompiler) {
  open(true);
  FakeWorker worker(service_->channel, "w2", {}, newer());
  const Kernels all = settled();
  EXPECT_EQ(counted(all), (std::map<std::string, int>{{"kept", static_cast<int>(records_)}}));
  for (const v1::ReverifiedKernel& one : all) {
    EXPECT_EQ(one.environment_before(), "gcc 12");
    EXPECT_EQ(one.environment(), "gcc 13");
    EXPECT_EQ(one.plan(), one.plan_before());
    EXPECT_GT(one.ns(), 0);
    const auto record = service_->record(one.key());
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->environment, "gcc 13");
  }
  const Job job = cached("r2");
  ASSERT_EQ(job.state, JobState::kSucceeded) << "it is answered from the store alone";
  EXPECT_EQ(job.result->groups[0].plan, fused().plan);
  for (const auto& [batch, plan, phase] : worker.measured()) EXPECT_GT(phase, 0) << "no search: " << batch;
  EXPECT_LE(worker.measured().size(), static_cast<size_t>(2 * records_)) << "two trials each";
  EXPECT_TRUE(reverify().empty()) << "nothing is left";
}

TEST_F(Reverify, IsOffUnlessItIsWanted) {
  FakeWorker worker(service_->channel, "w2", {}, newer());
  wait_for_workers(file(), 2);
  TuneOptions one = trials(1);
  one.device = newer();
  EXPECT_TRUE(kernels().empty());
  const std::vector<std::string> jobs = reverify("cpu:avx512");
  EXPECT_TRUE(jobs.empty()) << "there is no kernel of that target";
  ASSERT_EQ(reverify("cpu").size(), 1u) << "an operator asks for it";
  EXPECT_EQ(counted(settled()), (std::map<std::string, int>{{"kept", static_cast<int>(records_)}}));
}

TEST_F(Reverify, SlowerOrBeatenWinnersHaveMoved) {
  open(true);
  FakeWorker worker(service_->channel, "w2",
                    {.judge =
                         [&](const Batch& batch, Trial* trial) {
                           if (trial->outcome != Outcome::kCorrect) return;
                           const bool standard = trial->plan.ends_with(" number=0");
                           // With the new compiler, the fused kernel is slower than the default schedule, and the other
                           // kernels take longer than before.
                           if (batch.problem.key == fused().key) {
                             trial->samples_ns = {standard ? 900 : 1800};
                           } else {
                             for (int64_t& ns : trial->samples_ns) ns *= 2;
                           }
                         }},
                    newer());
  const Kernels all = settled();
  EXPECT_EQ(counted(all), (std::map<std::string, int>{{"moved", static_cast<int>(records_)}}));
  for (const v1::ReverifiedKernel& one : all) {
    if (one.key() == fused().key) {
      EXPECT_THAT(one.message(), HasSubstr("the default schedule is faster"));
      EXPECT_THAT(one.plan(), HasSubstr("number=0"));
      EXPECT_EQ(one.ns(), 900);
    } else {
      EXPECT_THAT(one.message(), HasSubstr("slower: "));
      EXPECT_EQ(one.ns(), 2 * one.before_ns());
    }
  }
  EXPECT_THAT(cached("r2").result->groups[0].plan, HasSubstr("number=0")) << "the faster one is served";
}

// A kernel that is wrong with the new compiler is no longer served, and a job that asks for it searches anew.
TEST_F(Reverify, WrongWinnersAreLostAndNotServed) {
  open(true);
  std::atomic<bool> broken = true;
  const auto break_fused = [&](const Batch&, Trial* trial) {
    if (!broken || trial->plan != fused().plan) return;
    trial->outcome = Outcome::kWrongResult;
    trial->message = "y(0, 3): expected 1, got 2";
    trial->samples_ns.clear();
  };
  FakeWorker worker(service_->channel, "w2", {.judge = break_fused}, newer());
  const Kernels all = settled();
  EXPECT_EQ(counted(all), (std::map<std::string, int>{{"kept", static_cast<int>(records_) - 1}, {"lost", 1}}));
  for (const v1::ReverifiedKernel& one : all) {
    if (one.key() != fused().key) continue;
    EXPECT_EQ(one.outcome(), "lost");
    EXPECT_EQ(one.plan(), "");
    EXPECT_EQ(one.ns(), 0);
    EXPECT_THAT(one.message(), AllOf(HasSubstr("wrong_result"), HasSubstr("expected 1, got 2")));
  }
  EXPECT_EQ(number_in(file(),
                      "SELECT count(*) FROM records r JOIN environments e ON e.id = r.environment WHERE e.name = "
                      "'gcc 13' AND r.blessed = 1"),
            records_ - 1);
  EXPECT_TRUE(reverify().empty()) << "it is known to be lost";
  // The kernels of the group's parts are still served, but a job that may search looks for another fused kernel.
  TuneOptions options = trials(24);
  options.device = newer();
  const Job job = service_->run("r2", options);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.result->groups[0].source, "searched");
  EXPECT_NE(job.result->groups[0].plan, fused().plan);
}

TEST_F(Reverify, LostWinnersAreVerifiedOnceMoreWhenAsked) {
  std::atomic<bool> broken = true;
  open(true);
  FakeWorker worker(service_->channel, "w2",
                    {.judge =
                         [&](const Batch&, Trial* trial) {
                           if (!broken || trial->plan != fused().plan) return;
                           trial->outcome = Outcome::kCompileError;
                           trial->samples_ns.clear();
                         }},
                    newer());
  EXPECT_EQ(counted(settled())["lost"], 1);
  broken = false;
  const std::vector<std::string> jobs = reverify("", /*again=*/true);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(service_->watch(jobs[0]).back().state, JobState::kSucceeded);
  const Kernels all = kernels();
  EXPECT_EQ(all.size(), static_cast<size_t>(records_) + 1);
  EXPECT_EQ(counted(all)["lost"], 1) << "the first time";
  EXPECT_EQ(counted(all)["kept"], records_);
  EXPECT_EQ(cached("r2").state, JobState::kSucceeded);
}

}  // namespace
}  // namespace wl

// Confirmations by a second worker: when two workers' claims agree, which worker is asked to confirm, and what happens
// when workers leave or the coordinator restarts.
#include "server/jobs/confirm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

Claim claim(const std::string& worker, int64_t ns, int64_t default_ns, const std::string& object = "o") {
  Claim claim;
  claim.worker = worker;
  claim.winner.outcome = Outcome::kCorrect;
  claim.winner.samples_ns = {ns - 1, ns, ns + 5};
  claim.winner.object_sha256 = object;
  claim.standard = claim.winner;
  claim.standard->samples_ns = {default_ns, default_ns, default_ns};
  return claim;
}

std::string same_time(const Claim& a, const Claim& b) {
  return difference(a, b, Closeness::kSameTime);
}

std::string same_order(const Claim& a, const Claim& b) {
  return difference(a, b, Closeness::kSameOrder);
}

TEST(Claims, AgreeWithinWhatHonestMachinesDifferBy) {
  EXPECT_EQ(same_time(claim("a", 1000, 2000), claim("b", 1000, 2000)), "");
  EXPECT_EQ(same_time(claim("a", 1000, 2000), claim("b", 1900, 2100)), "") << "another load";
  EXPECT_EQ(same_time(claim("a", 1000, 1050), claim("b", 1150, 1050)), "") << "as fast as the default";
  EXPECT_THAT(same_time(claim("a", 100, 2000), claim("b", 1000, 2000)), HasSubstr("b measured 1000 ns"));
  EXPECT_THAT(same_time(claim("a", 1000, 2000), claim("b", 100, 2000)), HasSubstr("b measured 100 ns"));
  EXPECT_NE(same_time(claim("a", 1000, 1500), claim("b", 1800, 1500)), "") << "faster there, slower here";
  EXPECT_THAT(same_time(claim("a", 1000, 2000), claim("b", 1000, 2000, "p")), HasSubstr("b built p"));
  EXPECT_NE(same_time(claim("a", 1000, 2000), claim("a", 1000, 2000)), "") << "one worker is no two";
  Claim wrong = claim("b", 1000, 2000);
  wrong.winner.outcome = Outcome::kWrongResult;
  EXPECT_THAT(same_time(claim("a", 1000, 2000), wrong), HasSubstr("b says wrong_result"));
}

// The two workers' times are far apart because one machine is busy or one worker lies. In both cases the slower samples
// are those of the record.
TEST(Claims, AgreeByOrderWhereTimesAreApart) {
  EXPECT_EQ(same_order(claim("a", 1000, 2000), claim("b", 5000, 9000)), "");
  EXPECT_NE(same_time(claim("a", 1000, 2000), claim("b", 5000, 9000)), "");
  EXPECT_EQ(same_order(claim("a", 1000, 9000), claim("b", 5000, 9000)), "");
  EXPECT_NE(same_order(claim("a", 1000, 1500), claim("b", 1800, 1500)), "") << "slower than the default there";
  EXPECT_NE(same_order(claim("a", 1000, 2000), claim("b", 1000, 2000, "p")), "");
  const std::vector<Claim> claims = {claim("h", 100, 100), claim("a", 1000, 1000), claim("b", 1010, 1000)};
  EXPECT_EQ(agreed(claims, Closeness::kSameTime), (std::pair<size_t, size_t>(1, 2)));
  EXPECT_EQ(agreed(claims, Closeness::kSameOrder), (std::pair<size_t, size_t>(0, 1)));
}

// A worker's claim is refuted if its time is less than half of the times of two claims that agree, or if it names
// another object. A slower claim is not refuted.
TEST(Claims, LoadIsNoLie) {
  const Claim a = claim("a", 1000, 2000), b = claim("b", 1100, 2000);
  EXPECT_NE(refutation(claim("h", 400, 2000), a, b), "");
  EXPECT_NE(refutation(claim("h", 1000, 2000, "p"), a, b), "");
  EXPECT_EQ(refutation(claim("c", 600, 2000), a, b), "");
  EXPECT_EQ(refutation(claim("c", 9000, 18000), a, b), "");
}

TEST(Claims, TheFirstTwoThatAgreeDecide) {
  const Claim a = claim("a", 1000, 2000), b = claim("b", 1010, 2000), hostile = claim("h", 1000, 2000, "p");
  for (const Closeness closeness : {Closeness::kSameTime, Closeness::kSameOrder}) {
    EXPECT_EQ(agreed({a}, closeness), std::nullopt);
    EXPECT_EQ(agreed({a, hostile}, closeness), std::nullopt);
    EXPECT_EQ(agreed({hostile, a, b}, closeness), (std::pair<size_t, size_t>(1, 2)));
    EXPECT_EQ(agreed({a, hostile, b}, closeness), (std::pair<size_t, size_t>(0, 2)));
  }
}

TEST(Claims, TheSlowerSamplesAreKept) {
  KernelRecord record;
  confirm(claim("a", 1000, 2000), claim("b", 1200, 2100), &record);
  EXPECT_EQ(record.measured_by, "b");
  EXPECT_EQ(record.confirmed_by, "a");
  EXPECT_EQ(undisturbed_ns(record.samples_ns), 1200);
  EXPECT_EQ(undisturbed_ns(record.default_samples_ns), 2100);
  confirm(claim("a", 1000, 2000), claim("b", 600, 2100), &record);
  EXPECT_EQ(record.measured_by, "a");
  EXPECT_EQ(undisturbed_ns(record.samples_ns), 1000);
}

// A second worker also builds, checks and times every promoted kernel, with another seed for the check.
TEST(Confirmation, IsByAnotherWorker) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  std::mutex mutex;
  std::map<std::string, std::vector<uint64_t>> seeds;  // seeds of the checks of each batch, by the batch's id
  const auto look = [&](const Batch& batch) {
    const std::lock_guard lock(mutex);
    for (const Check& check : batch.checks) seeds[batch.id].push_back(check.seed);
    EXPECT_EQ(batch.recipe.interleave, batch.promotion());
    EXPECT_EQ(batch.keep_objects, batch.promotion());
  };
  FakeWorker one(service.channel, "one/w", {.before = look}), two(service.channel, "two/w", {.before = look});
  wait_for_workers(scratch.path("a.db"), 2);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const GroupResult& group : job.result->groups) {
    const KernelRecord record = service.record(group.key).value();
    EXPECT_EQ(std::set<std::string>({record.measured_by, record.confirmed_by}),
              (std::set<std::string>{"one/w", "two/w"}));
    EXPECT_EQ(record.check_seeds.size(), 3u);
    EXPECT_EQ(std::set<uint64_t>(record.check_seeds.begin(), record.check_seeds.end()).size(), 3u);
    EXPECT_EQ(group.confirmed_by, record.confirmed_by);
    for (FakeWorker* worker : {&one, &two}) {
      const std::string name = worker == &one ? "one/w" : "two/w";
      for (const MeasuredPlan& each : worker->measured())
        EXPECT_TRUE(each.plan != record.plan || !confirms(each.phase) || name == record.confirmed_by) << each;
    }
  }
}

TEST(Confirmation, IsNotWaitedForWhereThereIsOneWorker) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker one(service.channel, "one/w");
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const GroupResult& group : job.result->groups) {
    const KernelRecord record = service.record(group.key).value();
    EXPECT_EQ(record.measured_by, "one/w");
    EXPECT_EQ(record.confirmed_by, "");
  }
}

// The second worker registers and makes no further call, so the record is promoted without a confirmation.
TEST(Confirmation, IsGivenUpWhenTheOtherWorkerHasGone) {
  Scratch scratch;
  Service service(scratch.path("a.db"), /*lease_s=*/0.5);
  service.register_worker("gone/w");
  FakeWorker one(service.channel, "one/w");
  const Job job = service.run("r", trials(8));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const GroupResult& group : job.result->groups)
    EXPECT_EQ(service.record(group.key).value().confirmed_by, "") << group.key;
}

// The coordinator restarts while a confirmation is open (asked), or after a promotion whose confirmation was not stored
// yet (not_asked). It offers the confirmation again and does not repeat the promotion.
class ConfirmationSurvives : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ARestart, ConfirmationSurvives, testing::Bool(),
                         [](const auto& one) { return one.param ? "asked" : "not_asked"; });
TEST_P(ConfirmationSurvives, ARestart) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  const std::string graph = one_op(64);
  const std::string open = cat("SELECT count(*) FROM batches WHERE state = 'ready' AND phase > ", kConfirmation);
  {
    Service service(file);
    service.register_worker("two/w");
    FakeWorker one(service.channel, "one/w");
    ASSERT_TRUE(service.create("r", trials(8), graph).ok());
    while (number_in(file, open) == 0) std::this_thread::yield();
  }
  const auto seed =
      static_cast<uint64_t>(number_in(file, "SELECT check_seed FROM batches WHERE state = 'done' AND phase > 0"));
  if (!GetParam()) run_in(file, cat("DELETE FROM batches WHERE phase > ", kConfirmation));
  const int64_t promoted = number_in(file, cat("SELECT max(phase) FROM trials WHERE phase < ", kConfirmation));
  Service service(file);
  FakeWorker one(service.channel, "one/w"), two(service.channel, "two/w");
  const auto job = service.create("r", trials(8), graph);
  ASSERT_TRUE(job.ok()) << job.status();
  const Job done = service.watch(job->name).back();
  ASSERT_EQ(done.state, JobState::kSucceeded) << done.error;
  const KernelRecord record = service.record(done.result->groups.at(0).key).value();
  EXPECT_EQ(record.measured_by, "one/w");
  EXPECT_EQ(record.confirmed_by, "two/w");
  ASSERT_EQ(record.check_seeds.size(), 3u);
  EXPECT_EQ(record.check_seeds[1], seed);
  EXPECT_EQ(number_in(file, cat("SELECT max(phase) FROM trials WHERE phase < ", kConfirmation)), promoted);
}

}  // namespace
}  // namespace wl

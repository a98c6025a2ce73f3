// The class Leases by itself: which worker gets which batch, which report is accepted, and what happens to a batch
// whose lease ends without a report.
#include "server/engine/leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>

#include "tests/server/leases_alone.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Promotions of one kernel each are leased together, since their kernels can be compiled together. Other batches are
// not, and neither is one with which a worker was lost.
TEST_F(LeasesAlone, GiveSeveralBatchesOnlyIfEachPromotesOneKernel) {
  const auto ids = [](const Acquired& acquired) {
    std::vector<std::string> out;
    for (const LeaseGrant& grant : acquired.leases) out.push_back(grant.batch->id);
    return out;
  };
  using Ids = std::vector<std::string>;
  offer("a", 1, 0, 1, true);
  lose();
  offer("b", 2, 1, 1, true);
  offer("c", 3, 2, 1, true);
  offer("d", 4, 3, 1, true);
  offer("e", 5, 4, 8, true);
  offer("f", 6, 12, 1, true);
  offer("g", 7, 13);
  EXPECT_EQ(ids(acquire(2)), Ids{"a"}) << "a worker was lost with it";
  EXPECT_EQ(ids(acquire(2)), (Ids{"b", "c"}));
  EXPECT_EQ(ids(acquire(5)), Ids{"d"}) << "the next has eight candidates";
  EXPECT_EQ(ids(acquire(5)), Ids{"e"});
  EXPECT_EQ(ids(acquire(5)), Ids{"f"}) << "the next is a round's";
  EXPECT_EQ(ids(acquire(5)), Ids{"g"});
}

// On a full disk neither an object nor the end of its lease can be stored. The search hears of the error nevertheless.
TEST_F(LeasesAlone, AFailedUploadIsToldAlthoughNothingCanBeWritten) {
  offer("b", 1, 0);
  const LeaseGrant grant = acquire().leases.at(0);
  run_in(scratch_.path("a.db"), "CREATE TRIGGER full BEFORE UPDATE ON batches BEGIN SELECT RAISE(ABORT, 'full'); END");
  leases_.upload_failed(absl::ResourceExhaustedError("the disk is full"));
  leases_.release("w", ref(grant), LeaseEnd::kUnable);
  ASSERT_EQ(store_failed_.size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(store_failed_[0])) << store_failed_[0];
  store_failed_.clear();
  EXPECT_EQ(open_batches(), std::vector<std::string>{"b"}) << "its lease goes on";
}

TEST_F(LeasesAlone, GiveWhatIsDueFirstAndEveryBatchOnce) {
  offer("a", 2, 0);
  offer("b", 1, 1);
  ASSERT_EQ(acquire().leases.size(), 1u);
  ASSERT_EQ(leases_.doing()["w#1"].size(), 1U);
  EXPECT_EQ(leases_.doing()["w#1"][0].candidates, 1);
  EXPECT_EQ(leases_.doing()["w#1"][0].step, "") << "it has said nothing yet";
  const Acquired rest = acquire(5);
  ASSERT_EQ(rest.leases.size(), 1u);
  EXPECT_EQ(rest.leases[0].batch->id, "a") << "b was due before";
  EXPECT_TRUE(acquire().leases.empty());
  EXPECT_EQ(leases_.of_older_processes("w", 2).size(), 2u);
  EXPECT_TRUE(leases_.of_older_processes("w", 1).empty());
}

TEST_F(LeasesAlone, AReportCountsOnceAndHasATrialForEveryCandidate) {
  offer("a", 0, 0);
  const LeaseRef lease = ref(acquire().leases.at(0));
  EXPECT_EQ(leases_.report("w", "a", {"other", 1}, {}).value(), ReportOutcome::kStale);
  EXPECT_EQ(leases_.report("w", "a", lease, {}).value(), ReportOutcome::kAccepted);
  EXPECT_EQ(leases_.report("w", "a", lease, {}).value(), ReportOutcome::kDuplicate);
  ASSERT_EQ(stored_.size(), 1u);
  ASSERT_EQ(stored_[0].second.size(), 1u);
  EXPECT_EQ(stored_[0].second[0].plan, "plan 0");
  EXPECT_EQ(stored_[0].second[0].outcome, Outcome::kRuntimeError) << "the worker said nothing of it";
  EXPECT_EQ(leases_.renew("w", lease, "measure", 1), RenewOutcome::kLost);
}

class LeasesStuckAtOnce : public LeasesAlone {
 protected:
  LeasesStuckAtOnce() : LeasesAlone(Clock::duration::zero()) {}
};

TEST_F(LeasesStuckAtOnce, AreRenewedWithProgressOnly) {
  offer("a", 0, 0);
  const LeaseRef lease = ref(acquire().leases.at(0));
  EXPECT_EQ(leases_.renew("w", lease, "compile", 0), RenewOutcome::kOk);
  EXPECT_EQ(leases_.renew("w", lease, "compile", 0), RenewOutcome::kLost);
  EXPECT_EQ(leases_.renew("w", lease, "compile", 1), RenewOutcome::kOk);
  EXPECT_EQ(leases_.renew("w", lease, "check", 1), RenewOutcome::kOk);
  EXPECT_EQ(leases_.renew("w", lease, "check", 1), RenewOutcome::kLost);
}

// The runner of a worker hangs and cannot be ended, while the worker's process keeps renewing the lease.
TEST(StuckLease, IsLostAndTheBatchIsDoneElsewhere) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.lease_s = 0.6;
  options.stuck_s = 0.3;
  Service service(options);
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok()) << job.status();
  std::latch hangs(1);
  std::string hung;
  std::atomic<bool> lost = false;
  AgentOptions agent;
  agent.name = "hung";
  agent.devices = {fake_device()};
  agent.measure_with = [&](const Batch& batch, const MeasureOptions& measure) -> absl::StatusOr<Measured> {
    if (!hung.empty()) return absl::UnavailableError("out of order");
    hung = batch.id;
    hangs.count_down();
    const auto give_up = Clock::now() + std::chrono::seconds(20);
    while (!*measure.cancel && Clock::now() < give_up) std::this_thread::yield();
    lost = measure.cancel->load();
    return Measured{.trials = {}, .objects = {}, .cancelled = true};
  };
  std::jthread thread([&](const std::stop_token& stop) { (void)run_agent(service.channel, agent, stop); });
  hangs.wait();
  FakeWorker worker(service.channel, "w");
  const Job done = service.watch(job->name).back();
  EXPECT_EQ(done.state, JobState::kSucceeded) << done.error;
  EXPECT_TRUE(lost);
  const std::vector<MeasuredPlan> measured = worker.measured();
  EXPECT_TRUE(std::any_of(measured.begin(), measured.end(), [&](const auto& one) { return one.batch == hung; }));
  for (const GroupResult& group : done.result->groups)
    EXPECT_EQ(group.trials[static_cast<size_t>(Outcome::kRuntimeError)], 0);
}

// A worker with a fifth of its machine pauses four times as long as it works. It keeps the leases of batches that wait
// for the pause, although nothing comes of them for longer than a stuck worker is given.
TEST(PausingWorker, KeepsToItsShareAndItsLeases) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.lease_s = 0.6;
  options.stuck_s = 0.5;
  Service service(options);
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<std::string> batches;
  Clock::time_point first, begun;
  Clock::duration work{0};
  Hooks hooks;
  hooks.share = 0.2;
  hooks.before = [&](const Batch& batch) {
    begun = Clock::now();
    if (batches.empty()) first = begun;
    EXPECT_GE(begun - first, 5 * work) << "before batch " << batches.size();
    batches.push_back(batch.id);
    while (Clock::now() < begun + std::chrono::milliseconds(80)) std::this_thread::yield();
  };
  hooks.forge = [&](const Batch&, Measured*) { work += Clock::now() - begun; };
  FakeWorker worker(service.channel, "w", hooks);
  const Job done = service.watch(job->name).back();
  EXPECT_EQ(done.state, JobState::kSucceeded) << done.error;
  EXPECT_TRUE(worker.stop().ok());
  EXPECT_GT(batches.size(), 1u);
  std::sort(batches.begin(), batches.end());
  EXPECT_EQ(std::adjacent_find(batches.begin(), batches.end()), batches.end()) << "no batch was lost and done again";
}

TEST_F(LeasesAlone, ABatchThatIsTakenBackCancelsItsLease) {
  offer("a", 0, 0);
  const LeaseRef lease = ref(acquire().leases.at(0));
  EXPECT_FALSE(leases_.take_back("a", "", /*leased_too=*/false));
  EXPECT_EQ(leases_.renew("w", lease, "check", 0), RenewOutcome::kOk);
  EXPECT_TRUE(leases_.take_back("a", "", /*leased_too=*/true));
  EXPECT_EQ(leases_.renew("w", lease, "check", 0), RenewOutcome::kCancel);
  EXPECT_EQ(leases_.report("w", "a", lease, {}).value(), ReportOutcome::kStale);
  EXPECT_TRUE(stored_.empty());
}

// A lease that a preempted worker returns is no evidence against its batch, however often the batch is returned.
TEST_F(LeasesAlone, APreemptedWorkerIsNoEvidence) {
  offer("a", 0, 0, 8);
  for (int i = 0; i < 20; ++i) lose("w", LeaseEnd::kReleased);
  EXPECT_TRUE(split_.empty());
  EXPECT_TRUE(stored_.empty());
  EXPECT_EQ(acquire().leases.at(0).batch->candidates.size(), 8u);
}

TEST_F(LeasesAlone, ABatchThatWorkersAreLostWithIsHandedOutInHalves) {
  offer("a", 0, 0, 8);
  lose();
  EXPECT_TRUE(split_.empty());
  lose("w", LeaseEnd::kSuperseded);
  EXPECT_THAT(split_, ElementsAre("a"));
  EXPECT_THAT(open_batches(), ElementsAre("a/0", "a/1"));
  const std::vector<LeaseGrant> halves = {acquire().leases.at(0), acquire().leases.at(0)};
  EXPECT_EQ(halves[0].batch->candidates.size(), 4u);
  EXPECT_EQ(halves[1].batch->candidates[0].plan, "plan 4");
  for (const LeaseGrant& half : halves) {
    EXPECT_EQ(leases_.report("w", half.batch->id, ref(half), {}).value(), ReportOutcome::kAccepted);
    EXPECT_EQ(stored_.back().second.size(), 4u);
  }
}

// While there is a second worker, losses of the first worker alone do not make a candidate count as failed.
TEST_F(LeasesAlone, ACandidateIsGivenUpWhenTwoWorkersWereLostOverItAlone) {
  ASSERT_TRUE(workers_.add("v", 0, {fake_device()}).ok());
  keep(10);
  offer("a", 0, 0);
  lose("w");
  EXPECT_TRUE(acquire(1, "w").leases.empty()) << "another worker shall try it";
  lose("v");
  lose("w");
  ASSERT_EQ(stored_.size(), 11u);
  EXPECT_EQ(stored_.back().second.at(0).outcome, Outcome::kRuntimeError);
  EXPECT_THAT(stored_.back().second.at(0).message, HasSubstr("3 processes of worker v, w were lost"));
  EXPECT_TRUE(open_batches().empty());
}

TEST_F(LeasesAlone, TheOnlyWorkerThatThereIsMayCondemn) {
  keep(10);
  offer("a", 0, 0);
  for (int i = 0; i < 3; ++i) lose();
  ASSERT_EQ(stored_.size(), 11u);
  EXPECT_EQ(stored_.back().second.at(0).outcome, Outcome::kRuntimeError);
}

// If most leases are lost, a few losses are no evidence against a candidate.
TEST(Verdict, FollowsFromHowOftenWorkersAreLostAnyway) {
  Evidence evidence{.lost_on = {"v", "w", "v"}, .candidates = 1, .others = 0, .usual_loss = 0.1};
  EXPECT_EQ(verdict_on(evidence), LossVerdict::kCondemn);
  evidence.usual_loss = 0.5;
  EXPECT_EQ(verdict_on(evidence), LossVerdict::kAgain);
  evidence.lost_on.resize(7, "w");
  EXPECT_EQ(verdict_on(evidence), LossVerdict::kCondemn);
  evidence.lost_on.assign(7, "w");
  EXPECT_EQ(verdict_on(evidence), LossVerdict::kCondemn);
  evidence.others = 1;
  EXPECT_EQ(verdict_on(evidence), LossVerdict::kAgain) << "the other worker has not been asked";
  evidence.candidates = 2;
  EXPECT_EQ(verdict_on(evidence), LossVerdict::kSplit);
}

TEST_F(LeasesAlone, AWorkerThatCannotDoABatchIsNotGivenItAgain) {
  offer("a", 0, 0);
  lose("w", LeaseEnd::kUnable);
  EXPECT_TRUE(acquire().leases.empty());
  leases_.expire();
  EXPECT_TRUE(acquire().leases.empty()) << "although there is no other worker";
  ASSERT_TRUE(workers_.add("v", 0, {fake_device()}).ok());
  EXPECT_EQ(acquire(1, "v").leases.size(), 1u);
  EXPECT_TRUE(stored_.empty());
}

TEST_F(LeasesAlone, WhatTheOnlyOtherWorkerDidNotTakeIsForAnybodyOnceThatIsGone) {
  Workers short_lived(store_.get(), milliseconds(0));  // a worker is gone once no call of it is open
  Leases leases(store_.get(), &short_lived, &loop_, milliseconds(60'000), std::chrono::hours(1), 0, false,
                {.stored = [](int64_t, const std::string&, const std::vector<Trial>&, const std::string&) {},
                 .split = [](int64_t, const std::string&, const std::vector<BatchRow>&) {},
                 .store_failed = [](int64_t, const absl::Status&) {}});
  leases.recovered();
  ASSERT_TRUE(short_lived.add("w", 1, {fake_device()}).ok());
  ASSERT_TRUE(short_lived.add("v", 0, {fake_device()}).ok());
  leases.offer(single("a"));
  const LeaseGrant grant = acquire_from(leases, "w", 1, Clock::now())->leases.at(0);
  {
    const Workers::Waiting waiting(&short_lived, "v", 1);
    leases.end({"a", ref(grant)}, LeaseEnd::kExpired);
    EXPECT_TRUE(acquire_from(leases, "w", 1, Clock::now())->leases.empty());
  }
  leases.expire();
  EXPECT_EQ(acquire_from(leases, "w", 1, Clock::now())->leases.size(), 1u);
}

// A worker that was away for longer than its lease returns with results that another worker has reported meanwhile.
TEST_F(LeasesAlone, LateReportsAreStaleEveryTime) {
  ASSERT_TRUE(workers_.add("v", 0, {fake_device()}).ok());
  int stale = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string id = cat("b", i);
    offer(id, 0, i);
    const LeaseGrant late = lose("w");
    const LeaseGrant now = acquire(1, "v").leases.at(0);
    stale += leases_.report("w", id, ref(late), {}).value() == ReportOutcome::kStale;
    ASSERT_EQ(leases_.report("v", id, ref(now), {}).value(), ReportOutcome::kAccepted);
    stale += leases_.report("w", id, ref(late), {}).value() == ReportOutcome::kStale;
  }
  EXPECT_EQ(stale, 400) << "before the other report and after it";
  EXPECT_EQ(stored_.size(), 200u);
}

// A worker that makes progress but does not report loses its batch once another worker waits for work.
TEST_F(LeasesAlone, AWorkerThatReportsNothingHasItsBatchUntilAnotherOneWaits) {
  ASSERT_TRUE(workers_.add("v", 0, {fake_device()}).ok());
  offer("a", 0, 0);
  const LeaseGrant held = acquire(1, "w").leases.at(0);
  leases_.expire();
  EXPECT_EQ(leases_.renew("w", ref(held), "measure", 1), RenewOutcome::kOk) << "nobody else has asked";
  std::promise<absl::StatusOr<Acquired>> given;
  leases_.acquire("v", 1, 1, Clock::now() + std::chrono::hours(1), [&](auto out) { given.set_value(std::move(out)); });
  leases_.expire();
  EXPECT_EQ(given.get_future().get()->leases.size(), 1u);
  EXPECT_EQ(leases_.renew("w", ref(held), "measure", 9), RenewOutcome::kLost);
  offer("b", 0, 1);
  EXPECT_TRUE(acquire(1, "w").leases.empty()) << "others come first for a while";
  EXPECT_EQ(acquire(1, "v").leases.size(), 1u);
  EXPECT_TRUE(store_->open_batches(search_id_)->at(0).lost_on.empty()) << "it says nothing about the candidates";
}

// A worker may have ended while the coordinator was down, so no batch is blamed for a lease from before the restart.
TEST_F(LeasesAlone, ALeaseOfBeforeTheStartIsNoEvidence) {
  Offer offer = single("a");
  for (int restart = 0; restart < 5; ++restart) {
    const std::string lease = cat("l", restart);
    const int64_t attempt = *store_->lease_batch("a", lease, "w#1");
    offer.row = store_->open_batches(search_id_)->at(0);
    leases_.offer(offer);
    leases_.end({"a", {lease, attempt}}, LeaseEnd::kExpired);
    EXPECT_TRUE(store_->open_batches(search_id_)->at(0).lost_on.empty());
  }
  EXPECT_TRUE(stored_.empty());
}

TEST_F(LeasesAlone, NothingIsGivenWhileTheCoordinatorComputesOrIsDrained) {
  offer("a", 0, 0);
  loop_.post([] {});
  EXPECT_TRUE(acquire().leases.empty());
  leases_.drain(true);
  EXPECT_TRUE(acquire().drain);
  leases_.drain(false);
  EXPECT_FALSE(acquire().drain);
  leases_.leave();
  EXPECT_TRUE(absl::IsUnavailable(acquire_from(leases_, "w", 1, Clock::now() + std::chrono::hours(1)).status()));
}

TEST_F(LeasesAlone, WhatIsNotKnownYetIsToComeAgain) {
  leases_.expect(search_id_);
  EXPECT_EQ(leases_.renew("w", {"l", 1}, "check", 0), RenewOutcome::kOk);
  single("b");
  const int64_t attempt = *store_->lease_batch("b", "l", "w#1");
  EXPECT_TRUE(absl::IsUnavailable(leases_.report("w", "b", {"l", attempt}, {}).status()))
      << "its search is not open yet";
  EXPECT_EQ(leases_.report("w", "b", {"m", attempt}, {}).value(), ReportOutcome::kStale);
  leases_.arrived(search_id_);
  EXPECT_EQ(leases_.renew("w", {"l", 1}, "check", 0), RenewOutcome::kLost);
  EXPECT_TRUE(absl::IsUnavailable(leases_.report("w", "b", {"l", attempt}, {}).status()))
      << "its job may still come to its search";
  // After the term of a lease without a new search, nobody will.
  Leases later{store_.get(), &workers_, &loop_, {}, {}, 0, false, {}};
  later.recovered();
  while (absl::IsUnavailable(later.report("w", "b", {"l", attempt}, {}).status())) {
  }
  EXPECT_EQ(later.report("w", "b", {"l", attempt}, {}).value(), ReportOutcome::kStale);
}

// A worker that holds several batches measures them one after another, so the time of one is not held against the next.
TEST_F(LeasesAlone, TheTimeOfTheNextBatchBeginsWhenTheLastOneIsReported) {
  offer("a", 0, 0, 1, /*promotes=*/true);
  offer("b", 1, 1, 1, /*promotes=*/true);
  const Acquired both = acquire(2);
  ASSERT_EQ(both.leases.size(), 2u);
  const auto held_s = [&] { return leases_.doing().at("w#1").back().seconds; };
  while (held_s() < 0.02) {
  }
  const Clock::time_point reported = Clock::now();
  ASSERT_EQ(leases_.report("w", "a", ref(both.leases[0]), {}).value(), ReportOutcome::kAccepted);
  const double held = held_s();
  EXPECT_LE(held, std::chrono::duration<double>(Clock::now() - reported).count());
}

TEST_F(LeasesAlone, ABatchThatItsWorkerHasNotBegunIsTakenBack) {
  offer("a", 0, 0, 1, /*promotes=*/true);
  offer("b", 1, 1, 1, /*promotes=*/true);
  const Acquired both = acquire(2);
  ASSERT_EQ(both.leases.size(), 2u);
  EXPECT_EQ(leases_.renew("w", ref(both.leases[0]), "measure", 1), RenewOutcome::kOk);
  EXPECT_EQ(leases_.renew("w", ref(both.leases[1]), std::string(kWaitsForOthers), 1), RenewOutcome::kOk);
  EXPECT_FALSE(leases_.take_back("a", "", /*leased_too=*/false)) << "it is being measured";
  EXPECT_TRUE(leases_.take_back("b", "", /*leased_too=*/false));
  EXPECT_EQ(leases_.renew("w", ref(both.leases[1]), "measure", 1), RenewOutcome::kCancel);
}

}  // namespace
}  // namespace wl

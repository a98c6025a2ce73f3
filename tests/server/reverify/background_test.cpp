// Winners are verified again in the background: jobs of clients are served first, and the verification survives
// restarts, cancelled jobs and jobs that want the same kernels.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <set>

#include "tests/server/reverify/upgraded.h"

namespace wl {
namespace {

const std::string kOther = one_op(7, 9);

// Of two ready batches, a worker gets the one of a client's job. The other one, which verifies a winner, was ready
// earlier and is a promotion, and promotions come before search rounds among batches of equal priority.
TEST_F(Reverify, ABatchOfAJobHasItsTurnFirst) {
  open(true);
  const uint64_t epoch = service_->enter("w2", newer()).epoch();
  const auto ready = [&] { return number_in(file(), "SELECT count(*) FROM batches WHERE state = 'ready'"); };
  while (ready() == 0) std::this_thread::yield();  // until the batch that verifies a winner is ready
  TuneOptions options = trials(8);
  options.device = newer();
  const auto job = service_->create("r2", options, kOther);
  ASSERT_TRUE(job.ok()) << job.status();
  // Waits for the batch of the job itself, since further batches that verify winners may be ready by now.
  while (number_in(file(), cat("SELECT count(*) FROM batches b JOIN job_groups g ON g.search_id = b.search_id WHERE "
                               "b.state = 'ready' AND g.job_id = ",
                               job->name.substr(5))) == 0)
    std::this_thread::yield();
  const v1::Lease lease = service_->acquire("w2", epoch, 30);
  ASSERT_NE(lease.lease_id(), "");
  EXPECT_EQ(lease.batch().phase(), 0) << "a round of the job's search, and no promotion of a winner";
}

// The batches of a job are given out before those that verify winners, whichever were ready first.
TEST_F(Reverify, AJobInTheForegroundGoesFirst) {
  open(true);
  std::latch first(1), go(1);
  std::mutex mutex;
  std::vector<std::string> order;  // keys of the groups, in the order of measuring
  FakeWorker worker(service_->channel, "w2",
                    {.before =
                         [&](const Batch& batch) {
                           {
                             const std::lock_guard lock(mutex);
                             order.push_back(batch.problem.key);
                             if (order.size() > 1) return;
                           }
                           first.count_down();
                           go.wait();
                         }},
                    newer());
  first.wait();  // returns once the worker has the batch that verifies a winner
  TuneOptions options = trials(8);
  options.device = newer();
  const auto job = service_->create("r2", options, kOther);
  ASSERT_TRUE(job.ok()) << job.status();
  while (number_in(file(), cat("SELECT count(*) FROM batches b JOIN job_groups g ON g.search_id = b.search_id WHERE "
                               "g.job_id = ",
                               job->name.substr(5))) == 0)
    std::this_thread::yield();
  go.count_down();
  const Job done = service_->watch(job->name).back();
  ASSERT_EQ(done.state, JobState::kSucceeded) << done.error;
  size_t last = 0;
  {
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < order.size(); ++i)
      if (order[i] == done.result->groups[0].key) last = i;
    std::set<std::string> winners(order.begin(), order.begin() + static_cast<ptrdiff_t>(last));
    winners.erase(done.result->groups[0].key);
    EXPECT_EQ(winners.size(), 1u) << "only the one that was being verified came before the job was done";
  }
  EXPECT_EQ(counted(settled())["kept"], records_) << "and the others come afterwards";
}

// A verifying job verifies a limited number of winners. When it ends, the coordinator therefore looks for more: here
// it finds the record of the old environment that another job has made meanwhile.
TEST_F(Reverify, WhatIsLeftFollowsInAnotherJob) {
  open(true);
  Gate gate;
  FakeWorker worker(service_->channel, "w2", {.before = [&](const Batch&) { gate.hold(); }}, newer());
  gate.reached.wait();
  FakeWorker old(service_->channel, "w");
  const Job job = service_->run("r2", trials(8), kOther);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  gate.go.count_down();
  ++records_;
  EXPECT_EQ(counted(settled())["kept"], records_);
  EXPECT_EQ(number_in(file(), "SELECT count(DISTINCT job_id) FROM reverified"), 2);
}

TEST_F(Reverify, ARestartGoesOn) {
  open(true);
  std::latch reached(1), go(1);
  std::atomic<int> batches = 0;
  auto worker = std::make_unique<FakeWorker>(service_->channel, "w2",
                                             Hooks{.before =
                                                       [&](const Batch&) {
                                                         if (++batches != 2) return;
                                                         reached.count_down();
                                                         go.wait();
                                                       }},
                                             newer());
  reached.wait();
  go.count_down();
  (void)worker->stop();
  worker.reset();
  const int64_t done = number_in(file(), "SELECT count(*) FROM reverified WHERE outcome > 0");
  EXPECT_LT(done, records_) << "it was stopped in the middle";
  open(true);
  FakeWorker again(service_->channel, "w2", {}, newer());
  EXPECT_EQ(counted(settled()), (std::map<std::string, int>{{"kept", static_cast<int>(records_)}}));
  EXPECT_EQ(number_in(file(), "SELECT count(DISTINCT job_id) FROM reverified"), 1) << "the same job";
  EXPECT_LE(again.measured().size(), static_cast<size_t>(2 * (records_ - done))) << "what was settled is not measured";
  const Job job = service_->watch(cat("jobs/", number_in(file(), "SELECT max(job_id) FROM reverified"))).back();
  EXPECT_EQ(job.state, JobState::kSucceeded);
  ASSERT_TRUE(job.result.has_value());
  EXPECT_EQ(static_cast<int64_t>(job.result->groups.size()), records_);
}

// A worker that measured while the coordinator restarted reports before it registers again, and must get an answer.
TEST_F(Reverify, WhatWasLeasedBeforeARestartMayBeReportedAtOnce) {
  open(true);
  const uint64_t epoch = service_->enter("w2", newer()).epoch();
  const v1::Lease lease = service_->acquire("w2", epoch, 30);
  ASSERT_NE(lease.lease_id(), "");
  open(true);
  const v1::ReportResultsRequest report = honest_report("w2", lease);
  grpc::Status status = {grpc::UNAVAILABLE, ""};
  while (status.error_code() == grpc::UNAVAILABLE) {
    grpc::ClientContext context;
    v1::ReportResultsResponse answer;
    status = service_->workers->ReportResults(&context, report, &answer);
    std::this_thread::yield();
  }
  EXPECT_TRUE(status.ok()) << status.error_message();
  FakeWorker again(service_->channel, "w3", {}, newer());
  settled();
}

TEST_F(Reverify, ACancelledJobLeavesTheOthersAsTheyWere) {
  open(true);
  Gate gate;
  FakeWorker worker(service_->channel, "w2", {.before = [&](const Batch&) { gate.hold(); }}, newer());
  gate.reached.wait();
  const std::string name = kernels().at(0).job();
  EXPECT_TRUE(service_->cancel(name));
  EXPECT_EQ(service_->watch(name).back().state, JobState::kCancelled);
  gate.go.count_down();
  EXPECT_EQ(counted(kernels())["waiting"], records_) << "none was settled";
  EXPECT_TRUE(reverify().empty()) << "it is not begun again by itself";
  const std::vector<std::string> jobs = reverify("", /*again=*/true);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(service_->watch(jobs[0]).back().state, JobState::kSucceeded);
}

// If there are two workers, both must say that a winner is correct.
TEST_F(Reverify, ASecondWorkerConfirms) {
  open(true);
  FakeWorker one(service_->channel, "one/w", {}, newer()), two(service_->channel, "two/w", {}, newer());
  wait_for_workers(file(), 3);
  settled();
  for (const v1::ReverifiedKernel& kernel : kernels()) {
    const KernelRecord record = service_->record(kernel.key()).value();
    if (record.environment != "gcc 13" || record.confirmed_by.empty()) continue;
    EXPECT_NE(record.confirmed_by, record.measured_by);
  }
  EXPECT_GT(number_in(file(), "SELECT count(*) FROM trials WHERE phase > 1000000"), 0) << "they were asked";
}

// A job that wants more trials than the winner's search had continues the search.
TEST_F(Reverify, AJobThatWantsMoreOfTheSameKernelGetsIt) {
  open(true);
  Gate gate;
  FakeWorker worker(service_->channel, "w2",
                    {.before =
                         [&](const Batch& batch) {
                           if (batch.problem.key == fused().key) gate.hold();
                         }},
                    newer());
  gate.reached.wait();
  TuneOptions options = trials(48);
  options.device = newer();
  const auto job = service_->create("r2", options);
  ASSERT_TRUE(job.ok()) << job.status();
  while (number_in(file(), cat("SELECT count(*) FROM job_groups WHERE job_id = ", job->name.substr(5))) == 0)
    std::this_thread::yield();
  gate.go.count_down();
  const Job done = service_->watch(job->name).back();
  ASSERT_EQ(done.state, JobState::kSucceeded) << done.error;
  int64_t tried = 0;
  for (const int64_t count : done.result->groups[0].trials) tried += count;
  EXPECT_EQ(tried, 48);
  settled();
}

}  // namespace
}  // namespace wl

// A hostile worker, beside honest workers and alone: what it claims is not promoted, run or written
// (docs/design/trust.md#confirmation).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <mutex>
#include <thread>

#include "proto/transfer.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

const std::string kFast = "plan ops=4 number=1";  // the plan that a hostile worker claims to be fast

void expect_honest(Service& service, const Job& job, const std::string& hostile) {
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result)) {
    EXPECT_EQ(record.object_sha256, sha256_hex("object of " + record.plan));
    EXPECT_NE(record.measured_by, hostile);
    EXPECT_NE(record.confirmed_by, hostile);
    EXPECT_GE(median_of(record.samples_ns), 1000);
  }
}

// A candidate with a sample that is less than any kernel of its group can take (the floor) is stored as an error. It
// cannot win, and the search goes on.
TEST(Hostile, TimesBelowTheFloorAreErrors) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  std::atomic<int> claims = 0;
  FakeWorker worker(service.channel, "w", {.judge = [&](const Batch&, Trial* trial) {
                      if (trial->plan != kFast) return;
                      trial->outcome = Outcome::kCorrect;
                      trial->samples_ns = {900, 1, 900, 900};  // one false sample among the honest samples
                      ++claims;
                    }});
  const Job job = service.run("r", trials(32));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_GT(claims, 0);
  for (const GroupResult& group : job.result->groups) {
    EXPECT_NE(group.plan, kFast);
    EXPECT_GT(group.best_ns, 100);
  }
  EXPECT_EQ(claims, 1) << "it is no finalist, so nobody measures it again";
  const Rows rows =
      rows_of(scratch.path("a.db"), cat("SELECT DISTINCT message, samples_ns FROM trials WHERE plan = '", kFast, "'"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(rows[0][0], HasSubstr("not believed: a sample of 1 ns"));
  EXPECT_EQ(rows[0][1], "");
}

// Two honest workers refute a hostile third worker, whichever of the three promotes.
TEST(Hostile, ItsOwnObjectIsNotPromoted) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker hostile(service.channel, "hostile/w", {.forge = forge_objects});
  FakeWorker one(service.channel, "one/w"), two(service.channel, "two/w");
  wait_for_workers(scratch.path("a.db"), 3);
  expect_honest(service, service.run("r", trials(48)), "hostile/w");
}

TEST(Hostile, ItsTimesAreNotPromoted) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker hostile(service.channel, "hostile/w", {.judge = [](const Batch&, Trial* trial) {
                       trial->outcome = Outcome::kCorrect;
                       trial->samples_ns = {100, 101, 102};
                     }});
  FakeWorker one(service.channel, "one/w"), two(service.channel, "two/w");
  wait_for_workers(scratch.path("a.db"), 3);
  expect_honest(service, service.run("r", trials(48)), "hostile/w");
}

// Two workers disagree and there is no third worker: nothing is promoted. Once the hostile one is gone, the honest one
// serves new jobs.
TEST(Hostile, NothingIsPromotedThatTheOnlyOtherWorkerDenies) {
  Scratch scratch;
  Service service(scratch.path("a.db"), /*lease_s=*/0.5);
  FakeWorker honest(service.channel, "honest/w");
  {
    FakeWorker hostile(service.channel, "hostile/w", {.forge = forge_objects});
    wait_for_workers(scratch.path("a.db"), 2);
    const Job job = service.run("r", trials(24));
    EXPECT_EQ(job.state, JobState::kFailed);
    EXPECT_THAT(job.error.message(), HasSubstr("nothing is promoted that two workers do not agree on"));
    EXPECT_EQ(number_in(scratch.path("a.db"), "SELECT count(*) FROM records"), 0);
  }
  while (service.is_alive("hostile/w")) std::this_thread::yield();
  expect_honest(service, service.run("again", trials(24)), "hostile/w");
}

// A hostile worker leaves after its promotion. An honest worker is asked to confirm this promotion, refutes it, and
// then makes the promotion itself.
TEST(Hostile, WhatItLeavesBehindIsRepeatedByOthers) {
  Scratch scratch;
  Service service(scratch.path("a.db"), /*lease_s=*/0.5);
  std::latch promoting(1), honest_is_here(1), hostile_has_gone(1);
  std::once_flag first;
  FakeWorker hostile(service.channel, "hostile/w",
                     {.before =
                          [&](const Batch& batch) {
                            if (batch.phase == 0) return;
                            std::call_once(first, [&] { promoting.count_down(); });
                            honest_is_here.wait();
                          },
                      .forge = forge_objects});
  const auto job = service.create("r", trials(24));
  ASSERT_TRUE(job.ok()) << job.status();
  promoting.wait();
  FakeWorker honest(service.channel, "honest/w", {.before = [&](const Batch&) { hostile_has_gone.wait(); }});
  wait_for_workers(scratch.path("a.db"), 2);
  honest_is_here.count_down();
  // Waits until the hostile worker's promotion is stored and its confirmation is offered.
  while (number_in(scratch.path("a.db"), "SELECT count(*) FROM batches WHERE phase > 1000000") == 0)
    std::this_thread::yield();
  EXPECT_TRUE(hostile.stop().ok());
  while (service.is_alive("hostile/w")) std::this_thread::yield();
  hostile_has_gone.count_down();
  expect_honest(service, service.watch(job->name).back(), "hostile/w");
}

// Reports and uploads with an invalid digest, or for a lease or batch that is not the worker's own, are refused, and
// nothing of them is written.
TEST(Hostile, ForeignNamesAreRefused) {
  Scratch scratch;
  Service service(scratch.path("a.db"), /*lease_s=*/1);
  service.register_worker("hostile/w");
  const auto job = service.create("r", trials(16));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::Lease lease = service.acquire("hostile/w");
  const absl::StatusOr<Batch> batch = from_proto(lease.batch());
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto report = [&](const std::string& batch_id, const std::string& lease_id, const std::string& digest) {
    grpc::ClientContext context;
    v1::ReportResultsRequest request = honest_report("hostile/w", lease, 1);
    auto* item = request.mutable_items(0);
    item->set_lease_id(lease_id);
    item->set_batch_id(batch_id);
    for (v1::Trial& trial : *item->mutable_trials()) trial.set_object_sha256(digest);
    v1::ReportResultsResponse answer;
    return service.workers->ReportResults(&context, request, &answer);
  };
  const std::string good = sha256_hex("object");
  const auto stored = [&] { return number_in(scratch.path("a.db"), "SELECT count(*) FROM trials WHERE worker <> ''"); };
  for (const std::string& name : {std::string("../x"), scratch.path("x"), std::string("a/b")}) {
    EXPECT_EQ(report(batch->id, lease.lease_id(), name).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    grpc::ClientContext context;
    const auto blobs = v1::BlobStore::NewStub(service.channel);
    EXPECT_EQ(upload(*blobs, &context, name, "object").error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
  }
  (void)report("s1/p1/t0", lease.lease_id(), good);
  (void)report(batch->id, std::string(32, '0'), good);
  EXPECT_EQ(stored(), 0) << "another batch, and another lease";
  EXPECT_FALSE(std::filesystem::exists(scratch.path("x")));
  FakeWorker honest(service.channel, "honest/w");
  grpc::ClientContext context;
  v1::ReleaseLeasesRequest release;
  release.set_worker("hostile/w");
  auto* item = release.add_items();
  item->set_lease_id(lease.lease_id());
  item->set_attempt(lease.attempt());
  v1::ReleaseLeasesResponse released;
  EXPECT_TRUE(service.workers->ReleaseLeases(&context, release, &released).ok());
  expect_honest(service, service.watch(job->name).back(), "hostile/w");
}

}  // namespace
}  // namespace wl

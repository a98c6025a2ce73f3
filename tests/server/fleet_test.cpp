// A coordinator with several workers, or with none: whether candidates are blamed for lost workers, how many workers
// one search uses, and whether jobs end in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "compiler/base/sha256.h"
#include "server/store/store.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/scratch.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

int64_t failed(const JobResult& result) {
  int64_t sum = 0;
  for (const GroupResult& group : result.groups) sum += group.trials[static_cast<size_t>(Outcome::kRuntimeError)];
  return sum;
}

// Registers a new process of a worker and waits for a lease; returns nullopt if there is none in time.
std::optional<v1::Lease> lease_of_new_process(Service& service, const std::string& name, double wait_s) {
  const v1::Lease lease = service.acquire(name, service.enter(name).epoch(), wait_s);
  if (lease.lease_id().empty()) return std::nullopt;
  return lease;
}

// Registers a worker that acquires a lease and makes no further call. Returns whether the worker got a lease.
bool take_and_vanish(Service& service, const std::string& name) {
  return lease_of_new_process(service, name, 20).has_value();
}

// Every batch, including promotions, is lost several times before it is measured.
TEST(Preemption, CondemnsNobodyAndFailsNoJob) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 600);  // No lease expires; a new process of the same worker name takes over.
  const auto job = service.create("r", trials(16));
  ASSERT_TRUE(job.ok()) << job.status();
  int lost = 0;
  const auto counted = [&](const char* what) {
    return number_in(scratch.path("a.db"), cat("SELECT count(*) FROM ", what));
  };
  // Waits until a batch is ready, and returns whether there is one: none follows once the job is done.
  const auto goes_on = [&] {
    for (;;) {
      if (counted("batches WHERE state = 'ready'") > 0) return true;
      const auto seen = service.create("r", trials(16));
      if (!seen.ok() || is_done(seen->state)) return false;
      std::this_thread::yield();
    }
  };
  for (int i = 0; i < 50 && goes_on(); ++i) {
    // Each batch is lost twice. Then comes a worker that lives for one batch: in its second batch it waits until it is
    // asked to stop.
    lost += take_and_vanish(service, "w") && take_and_vanish(service, "w") ? 2 : 0;
    std::atomic<int> left = 1;
    std::latch one(1), asked(1);
    const int64_t before = counted("trials");
    FakeWorker worker(service.channel, "w", {.before = [&](const Batch&) {
                        if (left.fetch_sub(1) == 1)
                          one.count_down();
                        else
                          asked.wait();
                      }});
    one.wait();
    // A worker that is asked to stop gives back what it is measuring, so its first batch has to be stored before.
    while (counted("trials") == before) std::this_thread::yield();
    worker.request_stop();
    asked.count_down();
    (void)worker.stop();
  }
  FakeWorker worker(service.channel, "w");
  const Job done = service.watch(job->name).back();
  ASSERT_EQ(done.state, JobState::kSucceeded) << done.error;
  EXPECT_GT(lost, 10);
  EXPECT_EQ(failed(*done.result), 0) << "good candidates were condemned";
}

// A batch with a candidate that kills every worker is halved until the candidate is alone. Only this candidate fails,
// the others are measured.
TEST(Preemption, ACandidateThatKillsEveryWorkerIsFound) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 600);
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok()) << job.status();
  const auto poisonous = [](const v1::Batch& batch) {
    return std::any_of(batch.candidates().begin(), batch.candidates().end(),
                       [](const v1::Candidate& candidate) { return candidate.plan() == "plan ops=4 number=1"; });
  };
  int lost = 0;
  for (int i = 0; !is_done(service.create("r", trials(8))->state); ++i) {
    ASSERT_LT(i, 200);
    const std::string worker = cat("w", i % 2);
    const std::optional<v1::Lease> taken = lease_of_new_process(service, worker, 0.2);
    if (!taken) continue;
    const v1::Lease& lease = *taken;
    if (poisonous(lease.batch()) && lease.batch().phase() == 0) {
      ++lost;
      continue;
    }
    grpc::ClientContext reporting;
    v1::ReportResultsResponse answer;
    ASSERT_TRUE(service.workers->ReportResults(&reporting, honest_report(worker, lease), &answer).ok());
  }
  const Job done = service.watch(job->name).back();
  ASSERT_EQ(done.state, JobState::kSucceeded) << done.error;
  EXPECT_EQ(failed(*done.result), 1);
  EXPECT_GE(lost, 2 + 2 + 2 + 3) << "8, 4 and 2 candidates, then one alone";
  EXPECT_LE(lost, 2 + 2 + 2 + 7);
}

// Eight workers work on one search at the same time, each on a search round of its own.
TEST(OneHotGroup, UsesEveryWorker) {
  constexpr int kWorkers = 8;
  Scratch scratch;
  Service service(scratch.path("a.db"));
  std::latch together(kWorkers);
  std::atomic<int> arrived = 0;
  std::mutex mutex;
  std::set<std::string> batches;
  const auto meet = [&](const Batch& batch) {
    if (batch.promotion() || batch.problem.buffers.empty()) return;
    if (arrived.fetch_add(1) >= kWorkers) return;
    {
      const std::lock_guard lock(mutex);
      batches.insert(batch.id);
    }
    // Waits for the other workers, so the test hangs if fewer than kWorkers rounds are handed out at a time.
    together.arrive_and_wait();
  };
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.push_back(std::make_unique<FakeWorker>(service.channel, cat("w", i), Hooks{.before = meet}));
  const Job job = service.run("r", trials(512), one_op(64));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(batches.size(), static_cast<size_t>(kWorkers)) << "nothing was handed out twice";
  }
  std::set<std::string> plans;
  int64_t measured = 0;
  for (const auto& worker : workers) {
    for (const MeasuredPlan& each : worker->measured()) {
      if (each.phase > 0) continue;
      ++measured;
      plans.insert(each.plan);
    }
  }
  // Only the fake compiler's random choice of plans may repeat a plan. If rounds ignored plans that other rounds
  // measure, they would all propose the same plans.
  EXPECT_LT(measured - static_cast<int64_t>(plans.size()), 8) << "a plan that is being measured is not proposed again";
}

// If only one round is measured at a time, candidates do not depend on the number of workers.
TEST(OneHotGroup, IsTheSameForAnyFleetIfRoundsComeOneByOne) {
  std::vector<std::string> alone;
  for (const int workers : {1, 4}) {
    Scratch scratch;
    Service service(scratch.path("a.db"));
    std::vector<std::unique_ptr<FakeWorker>> fleet;
    for (int i = 0; i < workers; ++i) fleet.push_back(std::make_unique<FakeWorker>(service.channel, cat("w", i)));
    TuneOptions options = trials(64);
    options.at_once = 1;
    const Job job = service.run("r", options);
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    std::vector<std::string> plans;
    for (const auto& worker : fleet)
      for (const MeasuredPlan& each : worker->measured())
        if (each.phase == 0) plans.push_back(cat(each.batch, " ", each.plan));
    std::sort(plans.begin(), plans.end());
    if (workers == 1) alone = plans;
    EXPECT_EQ(plans, alone);
  }
}

TEST(Cancel, OfAllOwnersEndsASharedSearch) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const auto one = service.create("a", trials(1000)), two = service.create("b", trials(1000));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(service.cancel(one->name));
  EXPECT_TRUE(service.cancel(two->name));
  EXPECT_EQ(service.watch(one->name).back().state, JobState::kCancelled);
  EXPECT_EQ(service.watch(two->name).back().state, JobState::kCancelled);
}

TEST(Cancel, OfOneOwnerLeavesTheSearchToTheOther) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const auto one = service.create("a", trials(200)), two = service.create("b", trials(200));
  ASSERT_TRUE(one.ok() && two.ok());
  std::latch measuring(1), cancelled(1);
  std::atomic<int> batches = 0;
  FakeWorker worker(service.channel, "w", {.before = [&](const Batch&) {
                      if (++batches == 6) {
                        measuring.count_down();
                        cancelled.wait();
                      }
                    }});
  measuring.wait();
  EXPECT_TRUE(service.cancel(one->name));
  cancelled.count_down();
  const Job first = service.watch(one->name).back(), second = service.watch(two->name).back();
  EXPECT_EQ(first.state, JobState::kCancelled);
  EXPECT_TRUE(first.result.has_value()) << "it keeps what there was";
  ASSERT_EQ(second.state, JobState::kSucceeded) << second.error;
  int64_t tried = 0;
  for (int64_t count : second.result->groups[0].trials) tried += count;
  EXPECT_EQ(tried, 200);
}

// The oracle takes seconds for large groups. Neither a cancelled job nor a coordinator that stops waits for it.
TEST(Cancel, EndsTheCheckThatIsBeingMade) {
  for (const bool stops : {false, true}) {
    Scratch scratch;
    FakeCompiler compiler;
    std::latch checking(1);
    std::atomic<int> begun = 0, ended = 0;
    compiler.checking = [&](Work* work) {
      if (begun++ == 0) checking.count_down();
      while (go_on(work, 1000)) std::this_thread::yield();
      ++ended;
    };
    auto service = std::make_unique<Service>(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
    FakeWorker worker(service->channel, "w");
    const auto job = service->create("a", trials(10));
    ASSERT_TRUE(job.ok()) << job.status();
    checking.wait();
    if (!stops) {
      EXPECT_TRUE(service->cancel(job->name));
      EXPECT_EQ(service->watch(job->name).back().state, JobState::kCancelled);
    }
    (void)worker.stop();
    service.reset();
    EXPECT_EQ(begun, ended);
  }
}

TEST(Budget, IsKeptWithoutAnyWorker) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  TuneOptions options = trials(100);
  options.budget_s = 0.3;
  const Job known = service.run("device known", options);
  EXPECT_EQ(known.state, JobState::kFailed);
  EXPECT_THAT(std::string(known.error.message()), HasSubstr("no worker"));
  options.device.reset();
  const Job unknown = service.run("device unknown", options, cat(kGraph, "# another\n"));
  EXPECT_EQ(unknown.state, JobState::kFailed);
  EXPECT_THAT(std::string(unknown.error.message()), HasSubstr("budget of 0.3 s is over"));
}

// A fleet of up to 32 workers continues through up to 20 restarts of the coordinator: workers report what they measured
// to the next coordinator, and no batch, not even a promotion, is measured twice.
TEST(Restart, UnderALargeFleetMeasuresNothingTwice) {
  constexpr int kJobs = 8;
  // At a test scale below 0.25, as in `make test`, the fleet is smaller and the restarts are fewer.
  const auto fleet_size = std::min<int64_t>(32, testing::scaled(128)),
             restarts = std::min<int64_t>(20, testing::scaled(80));
  Scratch scratch;
  const std::string file = scratch.path("a.db"), address = "unix:" + scratch.path("s");
  // No lease may expire here, because the batch of an expired lease is rightly measured twice.
  const auto lease_s = static_cast<double>(testing::patience(6).count());
  auto service = std::make_unique<Service>(file, lease_s, address);
  std::mutex mutex;
  std::condition_variable measured;
  int batches = 0;
  // The test counts batches and not plans, since the fake compiler may propose a plan twice within a batch by chance.
  std::map<std::string, int> times;
  std::vector<std::unique_ptr<FakeWorker>> fleet;
  for (int i = 0; i < fleet_size; ++i) {
    fleet.push_back(std::make_unique<FakeWorker>(dial(address), cat("w", i), Hooks{.before = [&](const Batch& batch) {
                                                   const std::lock_guard lock(mutex);
                                                   ++batches;
                                                   ++times[batch.id];
                                                   measured.notify_all();
                                                 }}));
  }
  std::vector<std::string> names;
  for (int job = 0; job < kJobs; ++job) {
    const auto made = service->create(cat("r", job), trials(128), one_op(64 + job));
    ASSERT_TRUE(made.ok()) << made.status();
    names.push_back(made->name);
  }
  for (int restart = 0; restart < restarts; ++restart) {
    std::unique_lock lock(mutex);
    const int before = batches;
    // Waits until more batches are measured, but not for ever: before the last restarts, all work may be done.
    measured.wait_for(lock, std::chrono::seconds(3), [&] { return batches > before + 2; });
    lock.unlock();
    service.reset();
    service = std::make_unique<Service>(file, lease_s, address);
  }
  for (const std::string& name : names) EXPECT_EQ(service->watch(name).back().state, JobState::kSucceeded);
  fleet.clear();
  EXPECT_GT(times.size(), names.size());
  for (const auto& [batch, count] : times) EXPECT_EQ(count, 1) << batch;
}

// A worker that cannot reach its coordinator is idle as well: it ends after its idle time, before and after
// registering.
TEST(Idle, WorkersEndWithoutACoordinator) {
  Scratch scratch;
  AgentOptions options;
  options.name = "w";
  options.devices = {fake_device()};
  options.exit_when_idle_s = 0.2;
  const std::stop_source never;
  EXPECT_TRUE(absl::IsUnavailable(run_agent(dial("unix:" + scratch.path("nobody")), options, never.get_token())));
  // The coordinator ends while the worker measures.
  const std::string address = "unix:" + scratch.path("s");
  auto service = std::make_unique<Service>(scratch.path("a.db"), 15, address);
  ASSERT_TRUE(service->create("r", trials(8)).ok());
  options.measure_with = [&](const Batch& batch, const MeasureOptions&) -> absl::StatusOr<Measured> {
    service.reset();
    Measured measured;
    for (const Candidate& candidate : batch.candidates) measured.trials.push_back(fake_trial(candidate, false));
    return measured;
  };
  EXPECT_TRUE(absl::IsUnavailable(run_agent(dial(address), options, never.get_token())));
}

// An upload whose object cannot be stored fails, and no job fails because of it.
TEST(FullDisk, AnUploadThatIsRefusedFailsNoJob) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string object(600'000, 'x'), digest = sha256_hex(object);
  // A file has the path of the folder for this object, so the object cannot be stored.
  std::filesystem::create_directories(scratch.path("a.db.objects"));
  std::ofstream(scratch.path(cat("a.db.objects/", digest.substr(0, 2))));
  const auto blobs = v1::BlobStore::NewStub(service.channel);
  grpc::ClientContext context;
  v1::UploadResponse answer;
  auto writer = blobs->Upload(&context, &answer);
  for (size_t at = 0; at < object.size(); at += kBlobChunkBytes) {
    v1::UploadRequest chunk;
    if (at == 0) chunk.set_digest(digest);
    chunk.set_data(object.substr(at, kBlobChunkBytes));
    if (!writer->Write(chunk)) break;
  }
  writer->WritesDone();
  EXPECT_FALSE(writer->Finish().ok());
  FakeWorker worker(service.channel, "w");
  const Job done = service.watch(job->name).back();
  EXPECT_EQ(done.state, JobState::kSucceeded) << done.error;
}

// The coordinator was killed three times while it planned a job. The job then fails.
TEST(Planning, OfAJobThatEndsTheCoordinatorIsNotTriedForEver) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  {
    auto store = Store::open({.file = file}).value();
    JobRow row;
    row.request_id = "r";
    row.graph = kGraph;
    row.options = trials(8);
    row.device = fake_device();
    row.state = JobState::kRunning;
    row.created_ms = row.started_ms = 1;
    const int64_t id = store->create_job(row)->id;
    for (int64_t crash = 1; crash <= 3; ++crash) EXPECT_EQ(*store->set_job_planning(id, true), crash);
  }
  Service service(file);
  const Job done = service.watch("jobs/1").back();
  EXPECT_EQ(done.state, JobState::kFailed);
  EXPECT_THAT(std::string(done.error.message()), HasSubstr("ended the coordinator 3 times"));
}

}  // namespace
}  // namespace wl

// Plans and promotions end when the call, job or coordinator that waits for them ends. The fake compilers and workers
// of these tests would never finish by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

#include "server/services/work_pool.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

// Returns options that name no device. Once a worker has registered, a job with these options is planned on the
// engine's thread pool.
TuneOptions of_any_device() {
  TuneOptions options;
  options.trials = 8;
  return options;
}

// Makes a call, cancels it while the coordinator plans for it, and returns the call's status.
template <typename Call>
grpc::Status given_up(const FakeCompiler& compiler, Call call) {
  grpc::ClientContext context;
  std::thread caller([&] {
    while (compiler.planning == 0) std::this_thread::yield();
    context.TryCancel();
  });
  const grpc::Status status = call(&context);
  caller.join();
  return status;
}

void expect_idle(const FakeCompiler& compiler) {
  while (compiler.planning != 0) std::this_thread::yield();  // hangs if planning does not end
}

std::string large_graph() {
  std::string text = "graph {\n  %0 = input \"x\" : f32[64,32] normal(0,1)\n";
  for (int i = 0; i < 2000; ++i) append(&text, "  %", i + 1, " = exp %", i, " : f32[64,32]\n");
  return text + "  output \"y\" %2000\n}\n";
}

TEST(Ends, WithACallerThatCreatesAJob) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  service.compiler.stuck = true;
  v1::CreateTuningJobRequest request;
  request.set_request_id("r1");
  request.set_graph(kGraph);
  *request.mutable_options() = to_proto(trials(8));
  v1::Job job;
  const grpc::Status status = given_up(service.compiler, [&](grpc::ClientContext* context) {
    return service.tuning->CreateTuningJob(context, request, &job);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  expect_idle(service.compiler);
  v1::ListJobsResponse jobs;
  grpc::ClientContext context;
  ASSERT_TRUE(service.tuning->ListJobs(&context, {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0) << "there is no job that nobody asked for";
}

TEST(Ends, WithACallerThatInspects) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  service.compiler.stuck = true;
  v1::InspectRequest request;
  request.set_graph(kGraph);
  request.set_stage("space");
  *request.mutable_options() = to_proto(trials(8));
  const grpc::Status status = given_up(service.compiler, [&](grpc::ClientContext* context) {
    const auto stream = service.tuning->Inspect(context, request);
    v1::InspectResponse part;
    while (stream->Read(&part)) {
    }
    return stream->Finish();
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  expect_idle(service.compiler);
}

TEST(Ends, WithTheBudgetAndSaysThatPlanningTookIt) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  service.compiler.stuck = true;
  TuneOptions options = trials(8);
  options.budget_s = 0.05;
  const auto job = service.create("r1", options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(job.status())) << job.status();
  EXPECT_THAT(job.status().message(), testing::HasSubstr("planning took all of it"));
}

TEST(Ends, WithTheJob) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  service.compiler.stuck = true;
  const auto first = service.create("r1", of_any_device());
  ASSERT_TRUE(first.ok()) << first.status();
  FakeWorker worker(service.channel, "w");
  while (service.compiler.planning == 0) std::this_thread::yield();
  EXPECT_TRUE(service.cancel(first->name));
  expect_idle(service.compiler);
  EXPECT_EQ(service.watch(first->name).back().state, JobState::kCancelled);
  service.compiler.stuck = false;
  EXPECT_EQ(service.run("r2", trials(8)).state, JobState::kSucceeded) << "no thread of the pool is lost";
}

// A small graph is planned even while more callers than there are threads plan large graphs.
TEST(Ends, LateForLargeGraphsAndSoonForSmallOnes) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  service.compiler.stuck = true;
  service.compiler.stuck_beyond = 100;
  const std::string large = large_graph();
  constexpr int kCallers = 10;
  std::vector<grpc::ClientContext> contexts(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i)
    callers.emplace_back([&, i] {
      v1::CreateTuningJobRequest request;
      request.set_request_id(cat("large ", i));
      request.set_graph(large);
      *request.mutable_options() = to_proto(trials(8));
      v1::Job job;
      EXPECT_EQ(service.tuning->CreateTuningJob(&contexts[static_cast<size_t>(i)], request, &job).error_code(),
                grpc::StatusCode::CANCELLED);
    });
  while (service.compiler.planning < long_threads()) std::this_thread::yield();
  FakeWorker worker(service.channel, "w");
  EXPECT_EQ(service.run("small", trials(8)).state, JobState::kSucceeded);
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (std::thread& caller : callers) caller.join();
  expect_idle(service.compiler);
}

// Small graphs are planned even while large graphs are planned for jobs that waited for a worker. No client's call is
// open for these jobs.
TEST(Ends, JobsThatWaitedForAWorkerLetSmallOnesPass) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  service.compiler.stuck = true;
  service.compiler.stuck_beyond = 100;
  const std::string large = large_graph();
  TuneOptions options = trials(8);
  options.device.reset();
  options.target = "cpu:avx2";
  std::vector<std::string> waiting;
  for (int i = 0; i < 10; ++i) {
    const auto job = service.create(cat("large ", i), options, large);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->state, JobState::kQueued);
    waiting.push_back(job->name);
  }
  FakeWorker worker(service.channel, "w");
  while (service.compiler.planning < 1) std::this_thread::yield();
  EXPECT_EQ(service.run("small", options).state, JobState::kSucceeded);
  for (const std::string& name : waiting) EXPECT_TRUE(service.cancel(name));
  expect_idle(service.compiler);
}

// The thread pool serves callers in turn, so a caller that has queued many tasks does not delay other callers.
TEST(WorkPool, CallersHaveTurns) {
  std::promise<void> go_on;
  std::mutex mutex;
  std::vector<std::string> order;
  {
    WorkPool pool(1, 100);
    const auto note = [&](const std::string& caller) {
      return pool.post(
          [&, caller] {
            const std::lock_guard lock(mutex);
            order.push_back(caller);
          },
          caller);
    };
    EXPECT_TRUE(pool.post([&] { go_on.get_future().wait(); }, "first"));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(note("many"));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(note("few"));
    for (int i = 5; i < 25; ++i) EXPECT_TRUE(note("many"));
    EXPECT_FALSE(note("many")) << "it leaves room for others";
    EXPECT_TRUE(note("another"));
    pool.start();
    go_on.set_value();
  }
  EXPECT_THAT(std::vector<std::string>(order.begin(), order.begin() + 6),
              ::testing::ElementsAre("many", "few", "another", "many", "few", "many"));
}

TEST(Ends, WithTheCoordinatorAndGoesOnWithTheNext) {
  Scratch scratch;
  std::string name;
  {
    Service service(scratch.path("a.db"));
    service.compiler.stuck = true;
    const auto first = service.create("r1", of_any_device());
    ASSERT_TRUE(first.ok()) << first.status();
    name = first->name;
    FakeWorker worker(service.channel, "w");
    while (service.compiler.planning == 0) std::this_thread::yield();
  }
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  EXPECT_EQ(service.watch(name).back().state, JobState::kSucceeded);
}

// A worker that holds its first promotion until this object is destroyed, as the promotion of a large graph may take
// minutes.
class StuckPromotion {
 public:
  explicit StuckPromotion(Service& service)
      : worker_(service.channel, "w", {.before = [this](const Batch& batch) {
                  if (!batch.promotion() || held_.exchange(true)) return;
                  promoting_.count_down();
                  over_.wait();
                }}) {}
  ~StuckPromotion() { over_.count_down(); }
  void wait() { promoting_.wait(); }

 private:
  std::latch promoting_{1}, over_{1};
  std::atomic<bool> held_ = false;
  FakeWorker worker_;
};

// This test and the next one hang if promotions have no time limit.
TEST(Ends, AJobThatIsCancelledHasLittleTimeToPromote) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  StuckPromotion worker(service);
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok());
  worker.wait();
  EXPECT_TRUE(service.cancel(job->name));
  EXPECT_EQ(service.watch(job->name).back().state, JobState::kCancelled);
}

TEST(Ends, AJobWhoseBudgetIsOverHasLittleTimeToPromote) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  StuckPromotion worker(service);
  wait_for_workers(scratch.path("a.db"), 1);
  TuneOptions options = trials(8);
  options.budget_s = 1;
  const auto job = service.create("r", options);
  ASSERT_TRUE(job.ok());
  const Job end = service.watch(job->name).back();
  EXPECT_EQ(end.state, JobState::kFailed);
  EXPECT_THAT(end.error.message(),
              testing::HasSubstr("the budget of 1 s is over, and 4 of 4 kernels were not verified"));
}

}  // namespace
}  // namespace wl

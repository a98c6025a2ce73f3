// The state machine of jobs with the real services and a real store, but with scripted compilers and workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <numeric>

#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

TEST(Jobs, SearchedOnceAnsweredFromTheStoreAfterwards) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  Job first;
  {
    FakeWorker worker(service.channel, "w");
    first = service.run("r1", trials(24));
  }
  ASSERT_EQ(first.state, JobState::kSucceeded) << first.error;
  EXPECT_FALSE(first.cached);
  ASSERT_TRUE(first.result.has_value());
  const JobResult& result = *first.result;
  ASSERT_EQ(result.groups.size(), 1u);
  const GroupResult& group = result.groups[0];
  EXPECT_EQ(group.source, "searched");
  EXPECT_EQ(group.kernels_default, 3);
  EXPECT_EQ(group.default_ns, 6000) << "three parts of 2000";
  EXPECT_GT(group.best_ns, 0);
  EXPECT_LT(group.best_ns, 2000);
  int64_t tried = 0;
  for (int64_t count : group.trials) tried += count;
  EXPECT_EQ(tried, 24);
  EXPECT_EQ(result.kernels_default, 3);
  EXPECT_EQ(result.kernels, 1);
  ASSERT_EQ(result.steps.size(), 1u);
  ASSERT_EQ(result.steps[0].arguments.size(), 2u);
  EXPECT_EQ(result.buffers[result.steps[0].arguments[0]].name, "x");
  EXPECT_EQ(result.buffers[result.steps[0].arguments[1]].name, "y");
  EXPECT_EQ(result.outputs, (std::vector<Binding>{{"y", result.steps[0].arguments[1]}}));

  // The job needs no worker, since it is answered from the store.
  const int opened = service.compiler.opened;
  const auto again = service.create("r2", trials(24));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->state, JobState::kSucceeded);
  EXPECT_TRUE(again->cached);
  EXPECT_TRUE(again->result == first.result);
  EXPECT_EQ(service.compiler.opened, opened) << "an answer from the store looks at no space";
  const auto fewer = service.create("r3", trials(8));
  EXPECT_TRUE(fewer->cached) << "a smaller wish is answered too";

  // The store serves the record together with its object.
  grpc::ClientContext context;
  v1::GetKernelRequest request;
  request.set_digest(group.record_digest);
  v1::KernelRecord record;
  ASSERT_TRUE(service.kernels->GetKernel(&context, request, &record).ok());
  EXPECT_EQ(record.plan(), group.plan);
  EXPECT_EQ(record.object_sha256(), sha256_hex("object of " + group.plan));
  EXPECT_EQ(record.check_seeds_size(), 2);
}

TEST(Jobs, MoreTrialsGoOnFromWhatIsKnown) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  const Job small = service.run("r1", trials(8));
  const size_t before = worker.measured().size();
  const Job large = service.run("r2", trials(24));
  EXPECT_FALSE(large.cached);
  EXPECT_LE(large.result->groups[0].best_ns, small.result->groups[0].best_ns);
  size_t searched = 0;
  for (size_t i = before; i < worker.measured().size(); ++i) searched += worker.measured()[i].phase == 0;
  EXPECT_LE(searched, 16u);
  EXPECT_GE(searched, 10u);
}

using Measured2 = std::vector<MeasuredPlan>;

Measured2 search_only(const Measured2& all) {
  Measured2 out;
  for (const auto& item : all) {
    if (item.phase == 0) out.push_back(item);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
  return out;
}

// A worker with these hooks waits at search round `after` until the coordinator is restarted. Meanwhile it holds a
// lease of the old coordinator; it reports the results to the new one.
struct Restart {
  explicit Restart(int at) : after(at) {}
  Hooks hooks() {
    return {.before = [this](const Batch& batch) {
      if (batch.promotion() || ++rounds != after) return;
      reached.count_down();
      done.wait();
    }};
  }
  const int after;
  std::atomic<int> rounds = 0;
  std::latch reached{1}, done{1};
};

TEST(Jobs, RestartInMidSearchGoesOnWithTheSameCandidates) {
  Scratch scratch;
  Measured2 undisturbed;
  Job expected;
  {
    Service service(scratch.path("undisturbed.db"));
    FakeWorker worker(service.channel, "w");
    expected = service.run("r", trials(48));
    undisturbed = search_only(worker.measured());
  }
  for (int after : {1, 3, 4, 6}) {
    const std::string file = scratch.path(cat("restarted", after, ".db")), address = "unix:" + scratch.path("socket");
    auto service = std::make_unique<Service>(file, 15, address);
    Restart restart(after);
    FakeWorker worker(dial(address), "w", restart.hooks());
    ASSERT_TRUE(service->create("r", trials(48)).ok());
    restart.reached.wait();
    service.reset();
    service = std::make_unique<Service>(file, 15, address);
    restart.done.count_down();
    const std::vector<Job> seen = service->watch("jobs/1");
    ASSERT_FALSE(seen.empty());
    ASSERT_EQ(seen.back().state, JobState::kSucceeded) << seen.back().error;
    EXPECT_EQ(search_only(worker.measured()), undisturbed) << "restarted after batch " << after;
    EXPECT_EQ(seen.back().result->groups[0].plan, expected.result->groups[0].plan);
    EXPECT_EQ(seen.back().result->groups[0].trials, expected.result->groups[0].trials) << "none lost, none doubled";
  }
}

// A restart of the coordinator at any search round changes neither the covers nor the trials of a job.
TEST(Refinement, MeasuredTimesMakeTheCoverAnotherOne) {
  Measured2 undisturbed;
  for (const int after : {0, 1, 3, 4, 6}) {
    Scratch scratch;
    const std::string file = scratch.path("a.db"), address = "unix:" + scratch.path("socket");
    auto service = std::make_unique<Service>(file, 15, address, 0, /*refining=*/true);
    Restart restart(after);
    FakeWorker worker(dial(address), "w", restart.hooks());
    ASSERT_TRUE(service->create("r", trials(24)).ok());
    if (after > 0) {
      restart.reached.wait();
      service.reset();
      service = std::make_unique<Service>(file, 15, address, 0, /*refining=*/true);
      restart.done.count_down();
    }
    const std::vector<Job> seen = service->watch("jobs/1");
    ASSERT_FALSE(seen.empty());
    const Job& job = seen.back();
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    EXPECT_EQ(job.result->steps.size(), 2u);
    for (const GroupResult& group : job.result->groups)
      EXPECT_EQ(std::accumulate(group.trials.begin(), group.trials.end(), int64_t{0}), 24) << group.graph;
    auto measured = search_only(worker.measured());
    if (after == 0) {
      undisturbed = measured;
      using enum Unmeasured;
      // For each choice of covers: how many kernels had a measured time (none, then the whole kernel, then those of
      // its pairs too), and how the others were priced. Lower likely prices led to no other cover, so the last choice
      // allows measured kernels only.
      std::vector<std::pair<size_t, Unmeasured>> priced = {{0, kLikely}};
      priced.insert(priced.end(), 4, {1, kLikely});
      priced.insert(priced.end(), 4, {3, kLikely});
      priced.emplace_back(3, kNever);
      EXPECT_EQ(service->compiler.priced(), priced);
      EXPECT_EQ(job.result->cover_rounds, 1);
    }
    EXPECT_EQ(measured, undisturbed) << "restarted after batch " << after;
    EXPECT_TRUE(service->create("again", trials(24))->cached);
  }
}

TEST(Jobs, ALostLeaseCannotReport) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 0.3);
  const auto job = service.create("r", trials(1));
  ASSERT_TRUE(job.ok()) << job.status();
  const auto report = [&](const std::string& name, const v1::Lease& lease) {
    grpc::ClientContext context;
    v1::ReportResultsResponse answer;
    const grpc::Status status = service.workers->ReportResults(&context, empty_report(name, lease, 1), &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answer.outcomes_size() == 1 ? answer.outcomes(0) : v1::ReportResultsResponse::OUTCOME_UNSPECIFIED;
  };
  service.register_worker("a");
  service.register_worker("b");
  const v1::Lease first = service.acquire("a");
  ASSERT_FALSE(first.lease_id().empty());
  v1::Lease second;
  // The loop ends when lease `first` expires.
  while (second.batch().id() != first.batch().id()) second = service.acquire("b");
  EXPECT_GT(second.attempt(), first.attempt());
  EXPECT_EQ(report("a", first), v1::ReportResultsResponse::STALE);
  EXPECT_EQ(report("b", second), v1::ReportResultsResponse::ACCEPTED);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(report("b", second), v1::ReportResultsResponse::DUPLICATE);
  EXPECT_EQ(report("a", first), v1::ReportResultsResponse::STALE);
}

TEST(Jobs, AWorkerUnderItsOldNameTakesOverAtOnce) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 600);  // no lease expires in this test
  ASSERT_TRUE(service.create("r", trials(8)).ok());
  service.register_worker("w");
  const v1::Lease lost = service.acquire("w");  // the process that has this lease makes no further call
  ASSERT_FALSE(lost.lease_id().empty());
  FakeWorker worker(service.channel, "w");
  EXPECT_EQ(service.watch("jobs/1").back().state, JobState::kSucceeded);
}

TEST(Jobs, SlowFusedGroupIsTakenApartAndItsPartsAreSearched) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w", {.judge = [](const Batch& batch, Trial* trial) {
                      if (batch.problem.buffers.size() == 2 && trial->plan.find("ops=4") != std::string::npos) {
                        for (int64_t& sample : trial->samples_ns) sample *= 100;
                      }
                    }});
  const Job job = service.run("r", trials(16));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.result->steps.size(), 3u);
  EXPECT_EQ(job.result->kernels, 3);
  for (const GroupResult& group : job.result->groups) {
    int64_t tried = 0;
    for (int64_t count : group.trials) tried += count;
    EXPECT_EQ(tried, 16) << group.graph;
    EXPECT_LT(group.best_ns, group.default_ns);
  }
  // The kernels are x -> exp -> t0 -> add(x) -> t1 -> tanh -> y.
  EXPECT_EQ(job.result->buffers[job.result->steps[2].arguments.back()].name, "y");
  EXPECT_EQ(job.result->steps[0].arguments.back(), job.result->steps[1].arguments[0]);
  EXPECT_TRUE(service.create("again", trials(16))->cached);
}

// Before a group is split, the winning plans of its parts are tried for the whole group, also after a restart of the
// coordinator.
TEST(Jobs, AWholeThatIsTakenApartTriesWhatWonForItsParts) {
  Measured2 undisturbed;
  for (const int after : {0, 2, 5, 8, 9}) {
    Scratch scratch;
    const std::string file = scratch.path("a.db"), address = "unix:" + scratch.path("socket");
    const auto serve = [&] { return std::make_unique<Service>(file, 15, address, 0, false, /*known_plans=*/true); };
    auto service = serve();
    Restart restart(after);
    Hooks hooks = restart.hooks();
    // A plan of the whole group is slow, unless a part's plan of the same number was measured after the first 8 trials.
    std::set<std::string> of_parts;
    hooks.judge = [&](const Batch&, Trial* trial) {
      if (trial->outcome != Outcome::kCorrect) return;
      const std::string number = trial->plan.substr(trial->plan.rfind(' '));
      const bool whole = trial->plan.find("ops=4") != std::string::npos, late = trial->trial >= 8;
      if (!whole && late) of_parts.insert(number);
      trial->samples_ns = {!whole ? (late ? 500 : 1000) : of_parts.contains(number) ? 100 : 90'000};
    };
    FakeWorker worker(dial(address), "w", hooks);
    ASSERT_TRUE(service->create("r", trials(16)).ok());
    if (after > 0) {
      restart.reached.wait();
      service.reset();
      service = serve();
      restart.done.count_down();
    }
    const std::vector<Job> seen = service->watch("jobs/1");
    ASSERT_FALSE(seen.empty());
    ASSERT_EQ(seen.back().state, JobState::kSucceeded) << seen.back().error;
    EXPECT_EQ(seen.back().result->steps.size(), 1u) << "the whole again";
    EXPECT_EQ(restart.rounds, 9) << "two of each of four groups, and one more of the whole";
    const auto measured = search_only(worker.measured());
    if (after == 0) undisturbed = measured;
    EXPECT_EQ(measured, undisturbed) << "restarted after batch " << after;
    EXPECT_TRUE(service->create("again", trials(16))->cached);
  }
}

TEST(Jobs, NothingCorrectIsReported) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w", {.judge = [](const Batch&, Trial* trial) {
                      trial->outcome = Outcome::kWrongResult;
                      trial->samples_ns.clear();
                    }});
  const Job job = service.run("r", trials(8));
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.error.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(job.error.message()), ::testing::HasSubstr("no correct kernel"));
}

TEST(Jobs, AWrongDefaultScheduleDoesNotEndTheGroup) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w", {.judge = [](const Batch&, Trial* trial) {
                      if (trial->plan.ends_with(" number=0")) trial->outcome = Outcome::kWrongResult;
                    }});
  const Job job = service.run("r", trials(16));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_GT(job.result->default_ns, 0);
}

TEST(Jobs, CancelKeepsTheBestSoFar) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  std::latch busy(1);
  std::atomic<int> rounds = 0;
  FakeWorker worker(service.channel, "w", {.before = [&](const Batch& batch) {
                      if (!batch.promotion() && ++rounds == 40) busy.count_down();
                    }});
  const auto job = service.create("r", trials(100'000));
  ASSERT_TRUE(job.ok());
  busy.wait();
  ASSERT_TRUE(service.cancel(job->name));
  const Job end = service.watch(job->name).back();
  EXPECT_EQ(end.state, JobState::kCancelled);
  ASSERT_TRUE(end.result.has_value());
  EXPECT_LT(end.result->best_ns, 2000);
  EXPECT_FALSE(service.create("again", trials(100'000))->cached) << "cut short is not finished";
  TuneOptions cached = trials(100'000);
  cached.require_cached = true;
  EXPECT_TRUE(service.create("any", cached)->cached);
}

TEST(Jobs, RequireCachedNeverSearches) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  TuneOptions options = trials(8);
  options.require_cached = true;
  const Job miss = service.run("r1", options);
  EXPECT_EQ(miss.state, JobState::kNotCached);
  EXPECT_TRUE(worker.measured().empty());
  EXPECT_EQ(service.run("r2", trials(8)).state, JobState::kSucceeded);
  EXPECT_EQ(service.run("r3", options).state, JobState::kSucceeded);
}

TEST(Jobs, SameKeysAttachAndRetuneDoesNot) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const auto first = service.create("r1", trials(16));
  const auto second = service.create("r2", trials(16));
  EXPECT_EQ(service.create("r1", trials(16))->name, first->name);
  EXPECT_EQ(service.create("r1", trials(17)).status().code(), absl::StatusCode::kInvalidArgument);
  FakeWorker worker(service.channel, "w");
  const Job a = service.watch(first->name).back(), b = service.watch(second->name).back();
  EXPECT_EQ(a.result->groups[0].record_digest, b.result->groups[0].record_digest);
  const size_t once = worker.measured().size();
  TuneOptions retune = trials(16);
  retune.retune = true;
  EXPECT_FALSE(service.run("r3", retune).cached);
  EXPECT_EQ(worker.measured().size(), 2 * once) << "searched again from nothing";
}

TEST(Jobs, WaitsForADeviceAndTakesTheFirstThatComes) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  TuneOptions options;
  options.trials = 8;
  const auto job = service.create("r", options);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state, JobState::kQueued);
  FakeWorker worker(service.channel, "w");
  const Job end = service.watch(job->name).back();
  EXPECT_EQ(end.state, JobState::kSucceeded);
  EXPECT_EQ(end.device->name, "fake");
}

TEST(Jobs, BadInputIsRefusedAtOnce) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  EXPECT_EQ(service.create("r1", trials(8), "graph {").status().code(), absl::StatusCode::kInvalidArgument);
  TuneOptions options = trials(8);
  options.strategy = "psychic";
  EXPECT_EQ(service.create("r2", options).status().code(), absl::StatusCode::kInvalidArgument);
  options = trials(8);
  options.target = "cpu:abacus";
  EXPECT_EQ(service.create("r3", options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Jobs, WatchBeginsWithThePresentAndCountsUp) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  const auto job = service.create("r", trials(64));
  const std::vector<Job> seen = service.watch(job->name);
  ASSERT_FALSE(seen.empty());
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_NE(seen[i].version, seen[i - 1].version);
  EXPECT_EQ(seen.back().state, JobState::kSucceeded);
}

}  // namespace
}  // namespace wl

// The engine under failures: a full disk, an interrupted search, another version of the compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <set>

#include "server/jobs/job_plan.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

int64_t tried(const GroupResult& group) {
  int64_t sum = 0;
  for (int64_t count : group.trials) sum += count;
  return sum;
}

// Each iteration allows the store one page more than the previous one. Whichever write is the first that does not fit,
// the client that waits for this write gets the error.
TEST(FullDisk, EndsTheJobWhereverItStrikes) {
  Scratch scratch;
  // The graph is larger than a page, so that storing it needs further pages.
  const std::string graph = cat(kGraph, "# ", std::string(10'000, 'x'), "\n");
  int refused = 0, failed = 0, succeeded = 0;
  for (int64_t pages = 20; pages < 200 && succeeded == 0; ++pages) {
    SCOPED_TRACE(cat(pages, " pages"));
    Service service(scratch.path(cat(pages, ".db")), 15, "", pages);
    if (!service.started.ok()) {
      EXPECT_EQ(service.started.code(), absl::StatusCode::kResourceExhausted) << service.started;
      continue;
    }
    const auto job = service.create("r", trials(96), graph);
    if (!job.ok()) {
      EXPECT_EQ(job.status().code(), absl::StatusCode::kResourceExhausted) << job.status();
      ++refused;
      continue;
    }
    FakeWorker worker(service.channel, "w");
    const std::vector<Job> seen = service.watch(job->name);
    ASSERT_FALSE(seen.empty());
    if (seen.back().state == JobState::kSucceeded) {
      ++succeeded;
      continue;
    }
    ++failed;
    EXPECT_EQ(seen.back().state, JobState::kFailed);
    EXPECT_EQ(seen.back().error.code(), absl::StatusCode::kResourceExhausted) << seen.back().error;
    EXPECT_THAT(std::string(seen.back().error.message()), ::testing::HasSubstr("disk is full"));
    EXPECT_EQ(service.watch(job->name).back().state, JobState::kFailed) << "who asks later hears it too";
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(failed, 2) << "registration, rounds and reports";
  EXPECT_EQ(succeeded, 1);
}

TEST(Retune, CutShortAnswersWithTheBestThatIsKnown) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  Job before;
  {
    FakeWorker worker(service.channel, "w");
    before = service.run("r1", trials(24));
    ASSERT_EQ(before.state, JobState::kSucceeded);
  }
  // The job is cancelled before its first search round has been reported (0), or after that (1).
  for (int rounds : {0, 1}) {
    SCOPED_TRACE(cat(rounds, " rounds"));
    std::latch busy(1), cancelled(1);
    std::atomic<int> seen = 0;
    FakeWorker worker(service.channel, "w", {.before = [&](const Batch& batch) {
                        if (batch.promotion() || ++seen != rounds + 1) return;
                        busy.count_down();
                        cancelled.wait();
                      }});
    TuneOptions retune = trials(1000 + rounds);
    retune.retune = true;
    retune.seed = 7;
    const auto job = service.create(cat("retune", rounds), retune);
    ASSERT_TRUE(job.ok());
    busy.wait();
    ASSERT_TRUE(service.cancel(job->name));
    cancelled.count_down();
    const Job end = service.watch(job->name).back();
    EXPECT_EQ(end.state, JobState::kCancelled);
    ASSERT_TRUE(end.result.has_value());
    EXPECT_EQ(end.result->steps.size(), 1u) << "not one kernel per op";
    EXPECT_LE(end.result->groups[0].best_ns, before.result->groups[0].best_ns);
  }
  TuneOptions cached = trials(24);
  cached.require_cached = true;
  const Job after = service.run("after", cached);
  ASSERT_TRUE(after.result.has_value());
  EXPECT_LE(after.result->groups[0].best_ns, before.result->groups[0].best_ns) << "nor was the record displaced";
}

// The first promotions are timed while other load runs on the machine. The promotion is repeated once this load has
// ended, but at most three times if the load stays.
TEST(Promotion, IsRepeatedWhenEveryFinalistWasFasterBefore) {
  for (const auto& [loaded, promotions] : {std::pair(0, 1), std::pair(1, 2), std::pair(100, 4)}) {
    SCOPED_TRACE(cat(loaded, " under load"));
    Scratch scratch;
    Service service(scratch.path("a.db"));
    FakeWorker worker(service.channel, "w", {.judge = [most = loaded](const Batch& batch, Trial* trial) {
                        if (!batch.promotion() || batch.phase > most) return;
                        for (int64_t& ns : trial->samples_ns) ns *= 2;
                      }});
    const Job job = service.run("r", trials(16));
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    std::set<std::string> seen;
    for (const auto& [batch, plan, phase] : worker.measured())
      if (plan.starts_with("plan ops=4") && phase > 0) seen.insert(batch);
    EXPECT_EQ(seen.size(), static_cast<size_t>(promotions));
  }
}

TEST(Budget, StopsTheSearchAndKeepsTheBest) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  wait_for_workers(scratch.path("a.db"), 1);
  TuneOptions options = trials(1'000'000);
  options.budget_s = 0.5;
  const Job job = service.run("r", options);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  ASSERT_EQ(job.result->groups.size(), 1u);
  const GroupResult& group = job.result->groups[0];
  EXPECT_LT(tried(group), 1'000'000);
  EXPECT_GT(tried(group), 0);
  double best = 0;
  for (const auto& [batch, plan, phase] : worker.measured()) {
    const Trial trial = fake_trial({0, plan, {}}, false);
    if (!plan.starts_with("plan ops=4") || trial.outcome != Outcome::kCorrect) continue;
    const double ns = static_cast<double>(trial.samples_ns[0]);
    if (best == 0 || ns < best) best = ns;
  }
  EXPECT_EQ(group.best_ns, best) << "of all that was tried";
  EXPECT_TRUE(service.create("same", options)->cached) << "the same wish is answered";
  options.budget_s = 1000;
  const auto longer = service.create("longer", options);
  EXPECT_FALSE(longer->cached) << "a longer one goes on";
  EXPECT_TRUE(service.cancel(longer->name));
  EXPECT_EQ(service.watch(longer->name).back().state, JobState::kCancelled);
}

// Records that were made under another compiler are neither served without a check nor discarded.
class OtherEnvironment : public ::testing::Test {
 protected:
  OtherEnvironment() : service_(scratch_.path("a.db")) {
    FakeWorker worker(service_.channel, "w");
    before_ = service_.run("r1", trials(24));
    EXPECT_EQ(before_.state, JobState::kSucceeded);
    newer_.compiler_versions = "gcc 13";
    options_ = trials(24);
    options_.device = newer_;
  }

  Scratch scratch_;
  Service service_;
  Device newer_ = fake_device();
  TuneOptions options_;
  Job before_;
};

TEST_F(OtherEnvironment, TheKnownPlanIsVerifiedTimedAndServed) {
  TuneOptions cached = options_;
  cached.require_cached = true;
  EXPECT_EQ(service_.run("r2", cached).state, JobState::kNotCached) << "not blindly";
  FakeWorker worker(service_.channel, "w2", {}, newer_);
  const Job job = service_.run("r3", options_);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.result->groups[0].source, "transferred");
  EXPECT_EQ(job.result->groups[0].plan, before_.result->groups[0].plan);
  EXPECT_NE(job.result->groups[0].record_digest, before_.result->groups[0].record_digest);
  EXPECT_EQ(job.result->environment, "gcc 13");
  EXPECT_LE(worker.measured().size(), 8u) << "default and best of one fused group and three parts";
  for (const auto& [batch, plan, phase] : worker.measured()) {
    EXPECT_GT(phase, 0) << "checked on both seeds: " << batch;
  }
  EXPECT_TRUE(service_.create("r4", options_)->cached) << "and recorded under the new environment";
  TuneOptions more = trials(48);
  more.device = newer_;
  const Job searched = service_.run("r5", more);
  EXPECT_EQ(searched.result->groups[0].source, "searched");
  EXPECT_EQ(tried(searched.result->groups[0]), 48);
}

TEST_F(OtherEnvironment, APlanThatIsWrongThereIsSearchedAnew) {
  FakeWorker worker(service_.channel, "w2",
                    {.judge =
                         [&](const Batch&, Trial* trial) {
                           if (trial->plan == before_.result->groups[0].plan) {
                             trial->outcome = Outcome::kWrongResult;
                             trial->samples_ns.clear();
                           }
                         }},
                    newer_);
  const Job job = service_.run("r2", options_);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.result->groups[0].source, "searched");
  EXPECT_NE(job.result->groups[0].plan, before_.result->groups[0].plan);
  EXPECT_EQ(tried(job.result->groups[0]), 24);
}

TEST(Drain, IsReportedAndEndsNoWatch) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  const auto job = service.create("r", trials(8));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(service.server_info().draining());
  grpc::ClientContext context;
  v1::DrainResponse answer;
  ASSERT_TRUE(service.admin->Drain(&context, {}, &answer).ok());
  EXPECT_TRUE(service.server_info().draining());
  service.register_worker("w");
  grpc::ClientContext asking;
  v1::AcquireLeasesRequest request;
  request.set_worker("w");
  request.set_epoch(1);
  request.set_wait_s(0.1);
  v1::AcquireLeasesResponse leases;
  ASSERT_TRUE(service.workers->AcquireLeases(&asking, request, &leases).ok());
  EXPECT_TRUE(leases.drain());
  EXPECT_EQ(leases.leases_size(), 0);
  // A drained coordinator goes on running, and watches of jobs stay open until the jobs end.
  grpc::ClientContext watching, cancelling;
  v1::WatchJobRequest watch;
  watch.set_name(job->name);
  auto reader = service.tuning->WatchJob(&watching, watch);
  v1::Job seen;
  ASSERT_TRUE(reader->Read(&seen));
  v1::CancelJobRequest cancel;
  cancel.set_name(job->name);
  ASSERT_TRUE(service.tuning->CancelJob(&cancelling, cancel, &seen).ok());
  while (reader->Read(&seen)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(seen.state(), v1::JOB_STATE_CANCELLED);
}

// Outputs that are inputs, or second names of another output, need no kernel. The test plans with the real compiler.
TEST(Aliases, CostNoKernel) {
  const auto plan_of = [](const std::string& text) {
    TuneOptions options;
    return make_plan(text, options, fake_device(), warploom_compiler());
  };
  const auto only = plan_of(R"(graph {
  %0 = input "x" : f32[8,16] normal(0,1)
  output "a" %0
  output "b" %0
}
)");
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_TRUE(only->groups.empty());
  const auto nothing = assemble(*only, {}, {});
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_TRUE(nothing->steps.empty());
  EXPECT_EQ(nothing->outputs, (std::vector<Binding>{{"a", 0}, {"b", 0}}));

  const auto mixed = plan_of(R"(graph {
  %0 = input "x" : f32[8,16] normal(0,1)
  %1 = exp %0 : f32[8,16]
  %2 = add %1 %0 : f32[8,16]
  output "same" %0
  output "y" %2
  output "y too" %2
  output "e" %1
}
)");
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  for (const JobPlan::Level& level : mixed->levels) {
    for (const PlannedLaunch& launch : level.launches) {
      EXPECT_EQ(std::count(launch.stores.begin(), launch.stores.end(), 0), 0) << "stores to the input";
    }
  }
  EXPECT_EQ(mixed->levels.back().launches.size(), 2u);
}

// Four ops can be one kernel, two or four. The fastest combination of recorded kernels is chosen.
TEST(Covers, TheFastestMixtureIsChosen) {
  FakeCompiler compiler;
  compiler.halves = true;
  const auto plan = make_plan(R"(graph {
  %0 = input "x" : f32[8,16] normal(0,1)
  %1 = exp %0 : f32[8,16]
  %2 = tanh %1 : f32[8,16]
  %3 = neg %2 : f32[8,16]
  %4 = sqrt %3 : f32[8,16]
  output "y" %4
}
)",
                              {}, fake_device(), compiler);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->levels.size(), 3u);
  ASSERT_EQ(plan->levels[1].launches.size(), 2u);
  ASSERT_EQ(plan->levels[2].launches.size(), 4u);
  Records records;
  const auto took = [&](int level, int launch, int64_t ns) {
    KernelRecord& record = records[plan->groups[plan->levels[level].launches[launch].group].key];
    record.samples_ns = {ns};
  };
  for (int op = 0; op < 4; ++op) took(2, op, 10);
  using List = std::vector<Chosen>;
  EXPECT_EQ(*choose_launches(*plan, records), (List{{2, 0}, {2, 1}, {2, 2}, {2, 3}}));
  took(0, 0, 30);
  EXPECT_EQ(*choose_launches(*plan, records), (List{{0, 0}}));
  took(1, 0, 12);
  took(1, 1, 25);
  EXPECT_EQ(*choose_launches(*plan, records), (List{{0, 0}})) << "12 + 20 is more than 30";
  took(0, 0, 35);
  EXPECT_EQ(*choose_launches(*plan, records), (List{{1, 0}, {2, 2}, {2, 3}}));
  took(1, 1, 15);
  EXPECT_EQ(*choose_launches(*plan, records), (List{{1, 0}, {1, 1}}));
}

// Three equal layers with different weights have the same keys, so only one layer is tuned.
TEST(RepeatedBlocks, ShareTheirKeys) {
  std::string text = "graph {\n  %0 = input \"x\" : f32[64,64] normal(0,1)\n";
  int id = 1, from = 0;
  for (int layer = 0; layer < 3; ++layer) {
    append(&text, "  %", id, " = input \"w", layer, "\" : f32[64,64] normal(0,0.", layer + 1, ")\n");
    append(&text, "  %", id + 1, " = contract %", from, " %", id, " \"mk,kn->mn\" : f32[64,64]\n");
    append(&text, "  %", id + 2, " = tanh %", id + 1, " : f32[64,64]\n");
    append(&text, "  %", id + 3, " = reduce_sum %", id + 2, " axes=[1] : f32[64]\n");
    append(&text, "  %", id + 4, " = broadcast %", id + 3, " dims=[0] : f32[64,64]\n");
    append(&text, "  %", id + 5, " = div %", id + 2, " %", id + 4, " : f32[64,64]\n");
    from = id + 5;
    id += 6;
  }
  append(&text, "  output \"y\" %", from, "\n}\n");
  const auto plan = make_plan(text, {}, fake_device(), warploom_compiler());
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlannedGroup& group : plan->groups) {
    EXPECT_EQ(group.fused_count % 3, 0) << group.text;
    EXPECT_EQ(group.part_count % 3, 0) << group.text;
  }
}

}  // namespace
}  // namespace wl

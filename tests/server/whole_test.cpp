// Covers are timed as a whole before one is chosen, with scripted times and with restarts. The last tests check the
// contents of the batches in which covers are timed.
#include "server/jobs/whole.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <set>

#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Trial failed(const std::string& why) {
  Trial trial;
  trial.outcome = Outcome::kRuntimeError;
  trial.message = why;
  return trial;
}

// The compiler is the first base class, so that it exists before the service starts and resumes jobs of its store.
struct WholeService : RefiningCompiler, Service {
  explicit WholeService(const std::string& file, const std::string& listen = "")
      : Service(file, 15, listen, 0, false, false, &fake) {}
};

const TimedCover& chosen(const Job& job) {
  const auto& covers = job.result->covers;
  const auto at = std::find_if(covers.begin(), covers.end(), [](const TimedCover& cover) { return cover.chosen; });
  WL_CHECK(at != covers.end(), "no cover was chosen");
  return *at;
}

struct Race {
  int64_t refined, fused, single;
  const char* chosen;
  int64_t kernels;
};

TEST(WholeCovers, TheLeastTimeWinsAndFewerKernelsWithinNoise) {
  for (const Race& race : {
           Race{1000, 2000, 3000, "refined", 2},
           Race{1500, 1600, 1200, "single", 3},
           Race{1500, 1100, 1200, "fused", 1},
           Race{1000, 1009, 2000, "fused", 1},  // within noise (1 %) of "refined", and with fewer kernels
           Race{1000, 1020, 2000, "refined", 2},
           // "single" is faster than "refined", but within noise (1 %), and has more kernels.
           Race{1000, 3000, 995, "refined", 2},
       }) {
    Scratch scratch;
    WholeService service(scratch.path("a.db"));
    FakeWorker worker(
        service.channel, "w",
        by_times({{"refined", took(race.refined)}, {"fused", took(race.fused)}, {"single", took(race.single)}}));
    const Job job = service.run("r", refined_trials(24));
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    ASSERT_EQ(job.result->covers.size(), 3u);
    EXPECT_EQ(chosen(job).name, race.chosen) << race.refined << " " << race.fused << " " << race.single;
    EXPECT_EQ(job.result->kernels, race.kernels);
    EXPECT_EQ(job.result->steps.size(), static_cast<size_t>(race.kernels));
    EXPECT_FALSE(chosen(job).why.empty());
    // The answer from the store has the times by which the cover was chosen.
    const auto again = service.create("again", refined_trials(24));
    EXPECT_TRUE(again->cached);
    EXPECT_EQ(again->result->covers, job.result->covers);
  }
}

// When the parts of the fused kernel are measured one by one, at different moments, their times add up to less than the
// fused kernel's time. The cover with the fused kernel and the cover with its parts are both timed whole, and the
// faster cover is chosen.
TEST(WholeCovers, AGroupAsItIsRunsBesideItsParts) {
  for (const auto& [unsplit, kernels] : {std::pair{2000, 1}, std::pair{4000, 3}}) {
    Scratch scratch;
    FakeCompiler compiler;
    compiler.simpler_covers = {"single"};
    Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
    Hooks hooks = by_times({{"fused", took(3000)}, {"fused/unsplit", took(unsplit)}});
    hooks.judge = [](const Batch&, Trial* trial) {
      const bool is_part = trial->plan.starts_with("plan ops=2 ") || trial->plan.starts_with("plan ops=3 ");
      if (!is_part && trial->outcome == Outcome::kCorrect) trial->samples_ns = {20'000};
    };
    FakeWorker worker(service.channel, "w", hooks);
    TuneOptions options = trials(24);
    options.cover = "fused";
    const Job job = service.run("r", options);
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    ASSERT_EQ(job.result->covers.size(), 2u) << "the single kernels are the parts";
    EXPECT_EQ(job.result->kernels, kernels);
  }
}

TEST(WholeCovers, ACoverThatFailsIsNotChosen) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w",
                    by_times({{"refined", took(2000)}, {"fused", failed("SIGSEGV")}, {"single", took(2500)}}));
  const Job job = service.run("r", refined_trials(24));
  EXPECT_EQ(chosen(job).name, "refined");
  EXPECT_THAT(job.result->covers[1].why, HasSubstr("SIGSEGV"));
}

TEST(WholeCovers, WithoutTimesTheKernelsDecide) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  const Trial none = failed("no memory");
  FakeWorker worker(service.channel, "w", by_times({{"refined", none}, {"fused", none}, {"single", none}}));
  const Job job = service.run("r", refined_trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(chosen(job).name, "refined");
  EXPECT_THAT(chosen(job).why, HasSubstr("no cover was timed"));
}

// Other load on the machine comes and goes. The covers are timed again, in up to three batches, and compared by their
// fastest rounds.
TEST(WholeCovers, AreTimedAgainWhereOtherLoadRan) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  std::atomic<int> round = 0;
  Hooks hooks = by_times({});
  hooks.before = [&](const Batch& batch) { round += batch.chains.empty() ? 0 : 1; };
  hooks.whole = [&](const KernelChain& chain) {
    Trial trial = took(chain.plan == "fused" ? 2000 : 2500);
    if (round < 2) trial.samples_ns = {9000, 9000, chain.plan == "fused" ? 8000 : 6000, 6000, 9000};
    if (round == 2) trial.samples_ns.resize(8, trial.samples_ns.front());
    return trial;
  };
  FakeWorker worker(service.channel, "w", hooks);
  const Job job = service.run("r", refined_trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(chosen(job).name, "fused");
  EXPECT_EQ(chosen(job).samples_ns.size(), 13u) << "of both batches";
  EXPECT_GE(round, 2);
}

// A measured time that is less than any cover can take (the floor) is stored as an error, so that its cover is not
// chosen.
TEST(WholeCovers, ATimeBelowTheFloorWinsNothing) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w",
                    by_times({{"refined", took(5000)}, {"fused", took(6000)}, {"single", took(1)}}));
  const Job job = service.run("r", refined_trials(24));
  EXPECT_EQ(chosen(job).name, "refined");
  EXPECT_THAT(job.result->covers[2].why, HasSubstr("not believed"));
}

TEST(WholeCovers, NoneAreTimedWhereAJobAsksForKernelsAlone) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  TuneOptions options = refined_trials(24);
  options.kernels_alone = true;
  const Job job = service.run("r", options);
  EXPECT_THAT(job.result->covers, IsEmpty());
  for (const MeasuredPlan& item : worker.measured()) EXPECT_THAT(item.batch, ::testing::Not(HasSubstr("whole")));
  EXPECT_FALSE(service.create("with", refined_trials(24))->cached) << "it is another answer";
}

// Kernels of simpler covers get a quarter of the trials. They get the rest only if their cover comes close to the
// fastest.
TEST(WholeCovers, OnlyThoseThatComeCloseAreSearchedToTheEnd) {
  for (const auto& [single, wanted] : {std::pair{4000, 8}, std::pair{2100, 32}}) {
    Scratch scratch;
    WholeService service(scratch.path("a.db"));
    FakeWorker worker(service.channel, "w",
                      by_times({{"refined", took(2000)}, {"fused", took(9000)}, {"single", took(single)}}));
    const Job job = service.run("r", refined_trials(32));
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    EXPECT_EQ(chosen(job).name, "refined");
    int64_t asked = 32;
    for (const GroupProgress& progress : job.progress.groups) {
      const auto record = service.record(progress.key);
      if (record.ok() && record->ops == 1) asked = std::min(asked, record->trials_asked);
    }
    EXPECT_EQ(asked, wanted) << single;
  }
}

// A simpler cover is searched only if its kernels with default schedules are nearly as fast as those of the fastest
// cover; otherwise the result says why it is left out.
TEST(WholeCovers, OnlyThoseWithFastDefaultSchedulesAreSearched) {
  for (const auto& [single, wanted] : {std::pair{1.15, 1}, std::pair{1.05, 8}}) {
    Scratch scratch;
    FakeCompiler compiler;
    compiler.simpler_covers = {"single"};
    Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
    FakeWorker worker(service.channel, "w", by_times({{"fused", took(2000)}, {"single", took(9000)}}, single));
    TuneOptions options = trials(24);
    options.cover = "fused";
    const Job job = service.run("r", options);
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    const std::vector<TimedCover>& covers = job.result->covers;
    if (wanted == 1) {
      EXPECT_THAT(covers, IsEmpty()) << "the only cover left is one kernel";
    } else {
      ASSERT_EQ(covers.size(), 2u);
      EXPECT_EQ(chosen(job).name, "fused");
    }
    int64_t asked = 24;
    for (const GroupProgress& progress : job.progress.groups) {
      const auto record = service.record(progress.key);
      ASSERT_TRUE(record.ok()) << record.status();
      EXPECT_TRUE(record->ops == 1 || record->trials_asked == 24) << record->trials_asked;
      if (record->ops == 1) asked = std::min(asked, record->trials_asked);
    }
    EXPECT_EQ(asked, wanted) << single;
  }
}

// The coordinator restarts while a worker has the first or the second batch of covers (0: it does not restart). The
// same covers are compared and the same cover is chosen.
TEST(WholeCovers, ARestartGoesOnWithTheSameRace) {
  Scratch scratch;
  for (const int after : {0, 1, 2}) {
    const std::string file = scratch.path(cat("restarted", after, ".db")), address = "unix:" + scratch.path("socket");
    auto service = std::make_unique<WholeService>(file, address);
    std::latch reached{1}, restarted{1};
    std::atomic<int> races = 0;
    Hooks hooks = by_times({{"refined", took(2000)}, {"fused", took(2600)}, {"single", took(1900)}});
    hooks.before = [&](const Batch& batch) {
      if (batch.chains.empty() || ++races != after) return;
      reached.count_down();
      restarted.wait();
    };
    FakeWorker worker(dial(address), "w", hooks);
    ASSERT_TRUE(service->create("r", refined_trials(24)).ok());
    if (after > 0) {
      reached.wait();
      service.reset();
      service = std::make_unique<WholeService>(file, address);
      restarted.count_down();
    }
    const std::vector<Job> seen = service->watch("jobs/1");
    ASSERT_FALSE(seen.empty());
    ASSERT_EQ(seen.back().state, JobState::kSucceeded) << seen.back().error;
    EXPECT_EQ(chosen(seen.back()).name, "single") << after;
    std::vector<int64_t> times;
    for (const TimedCover& cover : seen.back().result->covers) times.push_back(cover.samples_ns.front());
    EXPECT_EQ(times, (std::vector<int64_t>{2000, 2600, 1900})) << after;
  }
}

TEST(WholeCovers, AWorkerThatVanishesLosesNothing) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  const Hooks times = by_times({{"refined", took(2000)}, {"fused", took(2600)}, {"single", took(1900)}});
  std::latch reached{1}, replaced{1};
  Hooks first = times;
  first.before = [&](const Batch& batch) {
    if (batch.chains.empty()) return;
    reached.count_down();
    replaced.wait();
  };
  FakeWorker vanishing(service.channel, "w", first);
  const auto job = service.create("r", refined_trials(24));
  reached.wait();
  // Another worker takes over the name of the first one, which ends the first worker's lease at once.
  FakeWorker other(service.channel, "w", times);
  const Job end = service.watch(job->name).back();
  replaced.count_down();
  EXPECT_EQ(end.state, JobState::kSucceeded) << end.error;
  EXPECT_EQ(chosen(end).name, "single");
}

TEST(WholeCovers, ACancelledRaceKeepsTheBestByKernels) {
  Scratch scratch;
  WholeService service(scratch.path("a.db"));
  std::latch reached{1}, cancelled{1};
  FakeWorker worker(service.channel, "w", {.before = [&](const Batch& batch) {
                      if (batch.chains.empty()) return;
                      reached.count_down();
                      cancelled.wait();
                    }});
  const auto job = service.create("r", refined_trials(24));
  reached.wait();
  EXPECT_TRUE(service.cancel(job->name));
  const Job end = service.watch(job->name).back();
  cancelled.count_down();
  EXPECT_EQ(end.state, JobState::kCancelled);
  ASSERT_TRUE(end.result.has_value());
  EXPECT_THAT(end.result->covers, IsEmpty());
  EXPECT_EQ(end.result->kernels, 2);
}

// The tests below check the contents of batches of chains, in which whole covers are timed.

constexpr char kInputIsOutput[] = R"(graph {
  %0 = input "x" : f32[64,32] normal(0,1)
  %1 = exp %0 : f32[64,32]
  %2 = tanh %1 : f32[64,32]
  output "same" %0
  output "y" %2
  output "y again" %2
}
)";

WholeCover cover_of(const std::string& graph, const std::string& name, Records& records) {
  const FakeCompiler compiler;
  TuneOptions options;
  options.cover = name;
  auto plan = make_plan(graph, options, fake_device(), compiler);
  WL_CHECK(plan.ok(), plan.status().ToString());
  for (const PlannedGroup& group : plan->groups) {
    KernelRecord& record = records[group.key];
    record.key = group.key;
    record.samples_ns = record.default_samples_ns = {100, 100};
    record.source.entry = "k" + group.key.substr(0, 8);
    record.source.target = "cpu:avx2";
    record.digest = sha256_hex(group.key);
  }
  auto result = assemble(*plan, records, {});
  WL_CHECK(result.ok(), result.status().ToString());
  return {name, *std::move(plan), *std::move(result)};
}

TEST(Chains, NameEveryValueOnce) {
  Records records;
  const Batch batch = chains_of({cover_of(kInputIsOutput, "single", records)}, records, {});
  ASSERT_EQ(batch.problem.buffers.size(), 2u) << "an input that is an output, and an output of two names";
  EXPECT_FALSE(batch.problem.buffers[0].output);
  EXPECT_TRUE(batch.problem.buffers[1].output);
  ASSERT_EQ(batch.chains.size(), 1u);
  EXPECT_EQ(batch.chains[0].intermediates, (std::vector<int64_t>{64 * 32 * 4}));
  ASSERT_EQ(batch.chains[0].steps.size(), 2u);
  EXPECT_EQ(batch.chains[0].steps[0].arguments, (std::vector<int>{0, 2}));
  EXPECT_EQ(batch.chains[0].steps[1].arguments, (std::vector<int>{2, 1}));
}

TEST(Chains, ShareKernelsAndNoNumber) {
  Records records;
  const Batch batch = chains_of({cover_of(kGraph, "fused", records), cover_of(kGraph, "single", records)}, records, {});
  ASSERT_EQ(batch.chains.size(), 2u);
  EXPECT_EQ(batch.chains[0].steps.size(), 1u);
  EXPECT_EQ(batch.chains[1].steps.size(), 3u);
  EXPECT_EQ(batch.candidates.size(), 4u);
  std::set<int64_t> numbers;
  for (const KernelChain& chain : batch.chains) EXPECT_TRUE(numbers.insert(chain.trial).second);
  for (const Candidate& kernel : batch.candidates) EXPECT_TRUE(numbers.insert(kernel.trial).second);
}

TEST(Chains, AnotherKernelMakesAnotherRace) {
  Records records;
  const auto covers = [&] {
    return std::vector<WholeCover>{cover_of(kGraph, "fused", records), cover_of(kGraph, "single", records)};
  };
  const std::vector<WholeCover> before = covers();
  const std::string key = chains_of(before, records, {}).problem.key;
  EXPECT_EQ(chains_of(covers(), records, {}).problem.key, key);
  std::vector<WholeCover> after = before;
  after[1].result.groups[0].record_digest = sha256_hex("another");
  EXPECT_NE(chains_of(after, records, {}).problem.key, key);
  TuneOptions cold;
  cold.cold = true;
  EXPECT_NE(chains_of(before, records, cold).problem.key, key);
}

TEST(Chains, ACoverThatRunsTheSameIsDropped) {
  Records records;
  std::vector<WholeCover> covers = {cover_of(kGraph, "fused", records), cover_of(kGraph, "single", records),
                                    cover_of(kGraph, "fused", records)};
  drop_equal(covers);
  ASSERT_EQ(covers.size(), 2u);
  EXPECT_EQ(covers[0].name, "fused");
  EXPECT_EQ(covers[1].name, "single");
}

}  // namespace
}  // namespace wl

// Searches of groups that differ in extents alone begin one after another, with the winners of those before them.
#include <gtest/gtest.h>

#include <latch>
#include <map>
#include <mutex>
#include <numeric>

#include "compiler/ir/text.h"
#include "server/engine/searches.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

TEST(Kin, DifferInExtentsAlone) {
  EXPECT_EQ(kin_of(one_op(8)), kin_of(one_op(1024, 3)));
  const std::string product =
      "graph {\n  %0 = input \"x\" : f32[8,4] normal(0,1)\n  %1 = broadcast %0 dims=[1] : f32[2,8,4]\n}\n";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = product;
    text.replace(text.find(from), from.size(), to);
    return kin_of(text);
  };
  EXPECT_NE(with("f32[8,4]", "f16[8,4]"), kin_of(product));
  EXPECT_NE(with("f32[2,8,4]", "f32[8,4]"), kin_of(product)) << "another rank";
  EXPECT_NE(with("dims=[1]", "dims=[0]"), kin_of(product));
  EXPECT_NE(with("broadcast", "reverse"), kin_of(product));
  EXPECT_EQ(with("f32[2,8,4]", "f32[3,8,16]"), kin_of(product));
}

// The text of a graph with an exp for each of these numbers of rows.
std::string several(const std::vector<int>& rows) {
  std::string text = "graph {\n", outputs;
  int id = 0;
  for (const int each : rows) {
    append(&text, "  %", id, " = input \"x", id, "\" : f32[", each, ",32] normal(0,1)\n  %", id + 1, " = exp %", id,
           " : f32[", each, ",32]\n");
    append(&outputs, "  output \"y", id, "\" %", id + 1, "\n");
    id += 2;
  }
  return cat(text, outputs, "}\n");
}

TuneOptions asked(int64_t trials) {
  TuneOptions options;
  options.trials = trials;
  options.cover = "single";
  options.kernels_alone = true;
  return options;
}

// Returns the plans of rounds by the number of rows of their group, in the order of measuring.
struct RoundsSeen {
  mutable std::mutex mutex;                            // the worker's thread may still run when a test looks
  std::vector<std::pair<int64_t, std::string>> plans;  // rows and plan of each candidate
  void add(int64_t rows, const std::string& plan) {
    const std::lock_guard lock(mutex);
    plans.emplace_back(rows, plan);
  }
  std::vector<std::string> of(int64_t rows) const {
    const std::lock_guard lock(mutex);
    std::vector<std::string> found;
    for (const auto& [each, plan] : plans)
      if (each == rows) found.push_back(plan);
    return found;
  }
  std::vector<int64_t> order() const {
    const std::lock_guard lock(mutex);
    std::vector<int64_t> rows;
    for (const auto& [each, plan] : plans)
      if (rows.empty() || rows.back() != each) rows.push_back(each);
    return rows;
  }
};

Hooks noting(RoundsSeen* measured) {
  return {.before = [measured](const Batch& batch) {
    if (batch.phase > 0) return;
    for (const Candidate& candidate : batch.candidates)
      measured->add(batch.problem.buffers.front().shape[0], candidate.plan);
  }};
}

TEST(Kin, BeginWithTheWinnersOfEachOther) {
  Scratch scratch;
  Service service(scratch.path("a.db"), 15, "", 0, false, /*known_plans=*/true);
  RoundsSeen measured;
  FakeWorker worker(service.channel, "w", noting(&measured));
  const Job job = service.run("r", asked(16), several({8, 16, 64}));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(measured.order(), (std::vector<int64_t>{8, 16, 64})) << "one search after another";
  std::map<int64_t, std::string> winner;
  for (const GroupResult& group : job.result->groups) {
    const auto graph = parse(group.graph);
    winner[graph->nodes[0].shape[0]] = group.plan;
  }
  EXPECT_EQ(measured.of(16).at(1), winner.at(8)) << "right after the default schedule";
  for (const GroupResult& group : job.result->groups)
    EXPECT_EQ(std::accumulate(group.trials.begin(), group.trials.end(), int64_t{0}), 16) << "each has all its trials";
}

// With two workers for three searches, none has to wait for what would keep it busy.
TEST(Kin, DoNotWaitWhileAWorkerWouldBeIdle) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  std::latch both(2);
  const auto meet = [&](const Batch& batch) {
    if (batch.phase == 0) both.arrive_and_wait();
  };
  std::atomic<int> rounds = 0;
  const Hooks hooks{.before = [&](const Batch& batch) {
    if (batch.phase == 0 && rounds++ < 2) meet(batch);
  }};
  FakeWorker one(service.channel, "one", hooks), two(service.channel, "two", hooks);
  // The two rounds meet although their groups are kin: the job would hang if one waited for the other.
  EXPECT_EQ(service.run("r", asked(8), several({8, 16, 64})).state, JobState::kSucceeded);
}

// What has a time limit gets a kernel of every group first.
TEST(Kin, DoNotWaitInAJobWithABudget) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  RoundsSeen measured;
  FakeWorker worker(service.channel, "w", noting(&measured));
  TuneOptions options = asked(24);
  options.budget_s = 600;
  const Job job = service.run("r", options, several({8, 16}));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_GT(measured.order().size(), 2u) << "rounds of both searches take turns";
}

// A graph in three ops of this many rows, which the fake compiler takes for one group, or two.
std::string three_ops(int rows) {
  const std::string type = cat("f32[", rows, ",32]");
  return cat("graph {\n  %0 = input \"x\" : ", type, " normal(0,1)\n  %1 = exp %0 : ", type,
             "\n  %2 = add %1 %0 : ", type, "\n  %3 = tanh %2 : ", type, "\n  output \"y\" %3\n}\n");
}

// What nobody has searched gets the winner of its kin, also where default schedules would be those of smaller groups.
TEST(Kin, PredictKernelsOfOtherExtents) {
  Scratch scratch;
  FakeCompiler compiler;
  compiler.known_plans = compiler.halves = true;
  Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
  FakeWorker worker(service.channel, "w");
  TuneOptions now = trials(0);
  now.effort = "now";
  EXPECT_EQ(service.run("nothing is known", now, three_ops(8)).result->steps.size(), 2u);
  const Job searched = service.run("searched", trials(16), three_ops(16));
  ASSERT_EQ(searched.result->steps.size(), 1u);
  const std::string won = searched.result->groups[0].plan;
  const Job predicted = service.run("predicted", now, three_ops(32));
  ASSERT_EQ(predicted.state, JobState::kSucceeded) << predicted.error;
  ASSERT_EQ(predicted.result->steps.size(), 1u);
  EXPECT_EQ(predicted.result->groups[0].plan, won);
  const absl::StatusOr<KernelRecord> record = service.record(predicted.result->groups[0].key);
  EXPECT_EQ(record->trials_asked, 1) << "it was not searched";
  EXPECT_GT(undisturbed_ns(record->default_samples_ns), undisturbed_ns(record->samples_ns));
}

}  // namespace
}  // namespace wl

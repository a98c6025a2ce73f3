// Which groups of a plan get trials follows from the plan, the records and the effort alone.
#include "server/jobs/wanted.h"

#include <gtest/gtest.h>

#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

PlannedLaunch launch(int group) {
  PlannedLaunch made;
  made.group = group;
  return made;
}

// Three levels: one launch of group 0; its parts, the groups 1 and 2; the parts of these, the groups 3, 4 and 5.
class Wanted : public ::testing::Test {
 protected:
  Wanted() {
    const auto group = [&](double model_ns, int64_t PlannedGroup::*count) {
      PlannedGroup& made = plan.groups.emplace_back();
      made.key = cat("key", plan.groups.size() - 1);
      made.model_ns = model_ns;
      made.*count = 1;
    };
    group(100, &PlannedGroup::fused_count);
    for (int i = 0; i < 2; ++i) group(60, &PlannedGroup::between_count);
    for (int i = 0; i < 3; ++i) group(90, &PlannedGroup::part_count);
    plan.levels.resize(3);
    plan.levels[0].launches = {launch(0)};
    plan.levels[0].parts_of = {{0, 1}};
    plan.levels[1].launches = {launch(1), launch(2)};
    plan.levels[1].parts_of = {{0, 1}, {2}};
    plan.levels[2].launches = {launch(3), launch(4), launch(5)};
  }

  void measured(int group, int64_t default_ns, int64_t best_ns) {
    KernelRecord& record = records[cat("key", group)];
    record.samples_ns = {best_ns, best_ns, best_ns};
    record.default_samples_ns = {default_ns, default_ns, default_ns};
  }

  std::map<int, int64_t> wanted() const { return wanted_trials(plan, records, without, {.trials = 48}); }

  JobPlan plan;
  Records records;
  std::set<std::string> without;
};

TEST_F(Wanted, TheOwnCoverComesFirst) {
  EXPECT_EQ(wanted(), (std::map<int, int64_t>{{0, 48}}));
}

TEST_F(Wanted, PartsThatTheModelCannotTellApartGetTheirDefaultSchedules) {
  measured(0, 200, 150);
  // The parts are modelled at 1.2 times the group. The last cover's kernels are for the comparison of the report.
  EXPECT_EQ(wanted(), (std::map<int, int64_t>{{0, 48}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}}));
  plan.groups[1].model_ns = 75;
  EXPECT_EQ(wanted(), (std::map<int, int64_t>{{0, 48}, {3, 1}, {4, 1}, {5, 1}}));
}

TEST_F(Wanted, PartsWithFasterDefaultSchedulesGetAllTrials) {
  measured(0, 200, 150);
  measured(1, 99, 99);
  measured(2, 101, 101);
  EXPECT_EQ(wanted().at(1), 1);
  measured(2, 99, 99);
  EXPECT_EQ(wanted().at(1), 48);
  EXPECT_EQ(wanted().at(2), 48);
  EXPECT_EQ(wanted().at(3), 1);  // groups of the last cover alone are not searched
}

TEST_F(Wanted, PartsOfAGroupWithoutACorrectKernelGetAllTrials) {
  without = {"key0", "key1"};
  EXPECT_EQ(wanted(), (std::map<int, int64_t>{{0, 48}, {1, 48}, {2, 48}, {3, 1}, {4, 1}, {5, 1}}));
}

TEST_F(Wanted, OnlyTheGroupsThatTakeMostTimeAreCompared) {
  // A second group of the first cover has nine kernels in the last cover.
  PlannedGroup& second = plan.groups.emplace_back();
  second.key = "key6";
  second.model_ns = 100;
  second.fused_count = 1;
  plan.levels[0].launches.push_back(launch(6));
  plan.levels[0].parts_of.push_back({2});
  plan.levels[1].launches.push_back(launch(6));
  plan.levels[1].parts_of.emplace_back();
  for (int i = 0; i < 9; ++i) {
    PlannedGroup& part = plan.groups.emplace_back();
    part.key = cat("key", plan.groups.size() - 1);
    part.part_count = 1;
    plan.levels[1].parts_of[2].push_back(static_cast<int>(plan.levels[2].launches.size()));
    plan.levels[2].launches.push_back(launch(static_cast<int>(plan.groups.size()) - 1));
  }
  plan.groups[1].model_ns = 1000;
  measured(0, 100, 100);
  measured(6, 100, 90);
  EXPECT_EQ(wanted().count(3), 1u);
  EXPECT_EQ(wanted().count(7), 0u) << "three kernels and nine are more than are compared";
  measured(6, 200, 190);
  EXPECT_EQ(wanted().count(3), 0u);
  EXPECT_EQ(wanted().count(7), 1u) << "the largest group is compared, however many kernels it takes";
}

TEST_F(Wanted, TimesOfACoverAreSumsOverItsLaunches) {
  plan.levels[0].launches.push_back(launch(0));
  EXPECT_EQ(modelled_ns(plan), 200);
}

// Jobs that answer at once (--effort now): only the kernels of the answer are made, one candidate for each, and what a
// search finds later is in the next answer.
TuneOptions now() {
  TuneOptions options = trials(0);
  options.effort = "now";
  options.cover = "fused";
  return options;
}

TEST(Now, OnlyTheKernelsOfTheAnswerAreMade) {
  Scratch scratch;
  FakeCompiler compiler;
  compiler.simpler_covers = {"single"};
  Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
  FakeWorker worker(service.channel, "w");
  const Job job = service.run("r", now());
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  ASSERT_EQ(job.result->groups.size(), 1u);
  EXPECT_TRUE(job.result->covers.empty());
  EXPECT_TRUE(job.result->default_estimated);
  ASSERT_EQ(worker.measured().size(), 1u) << "the default schedule, checked and timed once";
  EXPECT_GT(worker.measured()[0].phase, 0);
}

// A job that answers at once also makes the kernels of a cover that stores values in another layout.
TEST(Now, AnotherLayoutIsTakenIfItsKernelsAreClearlyFaster) {
  for (const auto& [fused_ns, kernels] : {std::pair{5000, 1}, {5900, 3}}) {
    Scratch scratch;
    FakeCompiler compiler;
    compiler.relaid_covers = {"fused"};
    Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
    Hooks hooks;
    hooks.judge = [fused = int64_t{fused_ns}](const Batch&, Trial* trial) {
      const bool is_part = trial->plan.starts_with("plan ops=2 ") || trial->plan.starts_with("plan ops=3 ");
      if (trial->outcome == Outcome::kCorrect) trial->samples_ns.assign(5, is_part ? 2000 : fused);
    };
    FakeWorker worker(service.channel, "w", hooks);
    TuneOptions asked = now();
    asked.cover = "single";
    const Job job = service.run("r", asked);
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    EXPECT_EQ(job.result->kernels, kernels);
    EXPECT_EQ(worker.measured().size(), 4u) << "the default schedule of each kernel of both covers";
    EXPECT_TRUE(job.result->covers.empty()) << "none was timed as a whole";
  }
}

// The plan of Wanted has three covers. A group of the first is used if it was searched, and otherwise its parts.
TEST_F(Wanted, AnAnswerAtOnceHasTheGroupsOfTheCoverBeforeTheLast) {
  const auto now = [&] { return wanted_trials(plan, records, without, {.trials = 1, .compares = false}); };
  EXPECT_EQ(now(), (std::map<int, int64_t>{{1, 1}, {2, 1}}));
  measured(0, 200, 150);
  EXPECT_EQ(now(), (std::map<int, int64_t>{{1, 1}, {2, 1}})) << "its default schedule alone was measured";
  without = {"key1"};
  EXPECT_EQ(now(), (std::map<int, int64_t>{{2, 1}, {3, 1}, {4, 1}}));
  records["key0"].trials_asked = 8;
  EXPECT_EQ(now(), (std::map<int, int64_t>{{0, 1}}));
}

TEST(Now, WhatASearchFoundLaterIsInTheNextAnswer) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  const Job first = service.run("first", now());
  ASSERT_EQ(first.state, JobState::kSucceeded) << first.error;
  const auto made = worker.measured().size();
  const auto again = service.create("again", now());
  EXPECT_EQ(again->state, JobState::kSucceeded) << "all its kernels are known";
  const Job tuned = service.run("tuned", trials(24));
  ASSERT_EQ(tuned.state, JobState::kSucceeded) << tuned.error;
  EXPECT_GT(worker.measured().size(), made) << "the answer that compares nothing is no answer to this one";
  const auto last = service.create("last", now());
  ASSERT_EQ(last->state, JobState::kSucceeded);
  EXPECT_NE(last->result->groups[0].plan, first.result->groups[0].plan);
  EXPECT_LT(last->result->best_ns, first.result->best_ns);
}

// An answer that was searched within a budget may have been timed as a whole, which one of single kernels is not.
TEST(Now, AnAnswerMadeWithinABudgetIsTheAnswer) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  FakeWorker worker(service.channel, "w");
  TuneOptions searching = trials(8);
  searching.cover = "fused";
  searching.budget_s = 3600;
  const Job tuned = service.run("tuned", searching);
  ASSERT_EQ(tuned.state, JobState::kSucceeded) << tuned.error;
  ASSERT_GT(tuned.result->total_s, 0);
  const auto again = service.create("again", now());
  ASSERT_EQ(again->state, JobState::kSucceeded);
  EXPECT_EQ(again->result->total_s, tuned.result->total_s) << "it was made of single kernels anew";
}

// The default schedules of the parts are known before the search begins. The parts get all trials nevertheless, since
// these are faster than the group's, although its best kernel is faster still.
TEST(Now, WhatItMadeDoesNotEndALaterSearchEarly) {
  Scratch scratch;
  FakeCompiler compiler;
  compiler.halves = true;
  Service service(scratch.path("a.db"), 15, "", 0, false, false, &compiler);
  Hooks hooks;
  hooks.judge = [](const Batch& batch, Trial* trial) {
    if (ops_of(batch, trial->plan) == 3 && trial->plan.ends_with(" number=0")) trial->samples_ns = {20'000};
  };
  FakeWorker worker(service.channel, "w", hooks);
  TuneOptions options = now();
  options.cover = "stitched";
  const Job first = service.run("first", options);
  ASSERT_EQ(first.state, JobState::kSucceeded) << first.error;
  ASSERT_EQ(first.result->groups.size(), 2u) << "the groups of the cover before the last";
  // The kernels with which the report compares are known as well, so the search of the whole group is the only one that
  // the job waits for at first.
  options.cover = "single";
  ASSERT_EQ(service.run("single", options).state, JobState::kSucceeded);
  TuneOptions searching = trials(24);
  searching.kernels_alone = true;
  const Job tuned = service.run("tuned", searching);
  ASSERT_EQ(tuned.state, JobState::kSucceeded) << tuned.error;
  for (const GroupResult& group : first.result->groups) {
    const auto record = service.record(group.key);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->trials_asked, 24) << group.key;
  }
}

TEST(Now, PartsReplaceAGroupWithoutACorrectKernel) {
  Scratch scratch;
  Service service(scratch.path("a.db"));
  Hooks hooks;
  hooks.judge = [](const Batch&, Trial* trial) {
    if (trial->plan.find("ops=4") == std::string::npos) return;
    trial->outcome = Outcome::kWrongResult;
    trial->samples_ns.clear();
  };
  FakeWorker worker(service.channel, "w", hooks);
  const Job job = service.run("r", now());
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.result->kernels, job.result->kernels_default);
  EXPECT_FALSE(job.result->default_estimated) << "the parts are what it is compared with";
}

TEST(Efforts, EveryRowIsFoundByItsName) {
  for (const Effort& row : kEfforts) EXPECT_EQ(effort_named(row.name), &row);
  EXPECT_EQ(effort_named("heroic"), nullptr);
  TuneOptions options;
  EXPECT_EQ(effort_of(options).name, kDefaultEffort);
  options.effort = "of a later version";
  EXPECT_EQ(effort_of(options).name, kDefaultEffort);
}

}  // namespace
}  // namespace wl

// A store that an older Warploom made is served and resumed. tests/data/made_before/store_plan1.db.gz has plans of
// version 1: job 1 is done, and job 2 was killed in the middle of its searches.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "server/store/store.h"
#include "tests/server/service.h"
#include "tests/server/unpack.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

class MadeBefore : public ::testing::Test {
 protected:
  void SetUp() override {
    unpack(WARPLOOM_SOURCE_DIR "/tests/data/made_before/store_plan1.db.gz", file_);
    StoreOptions options;
    options.file = file_;
    const auto store = Store::open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    device_ = (*store)->devices().value().at(0);
    const JobRow done = (*store)->job(1).value().value();
    graph_ = done.graph;
    before_ = *done.result;
    options_ = done.options;
    options_.device = device_;
    for (int64_t search = 1; search < 40; ++search) {
      const std::vector<PhaseTrial> trials = (*store)->trials(search).value();
      for (const PhaseTrial& each : trials) EXPECT_TRUE(each.trial.plan.starts_with("plan 1 ")) << each.trial.plan;
      trials_ += static_cast<int>(trials.size());
      const bool promoted = std::any_of(trials.begin(), trials.end(), [](const auto& each) { return each.phase > 0; });
      if (!promoted && !trials.empty()) unfinished_[cat("s", search)] = static_cast<int64_t>(trials.size());
    }
    (*store)->close();
  }

  std::unique_ptr<Service> reopen() {
    auto service = std::make_unique<Service>(file_, /*lease_s=*/120, "", 0, false, false, &warploom_compiler());
    EXPECT_TRUE(service->started.ok()) << service->started;
    return service;
  }

  Scratch scratch_;
  const std::string file_ = scratch_.path("store.db");
  Device device_;
  std::string graph_;
  TuneOptions options_;
  JobResult before_;
  int trials_ = 0;
  std::map<std::string, int64_t> unfinished_;  // numbers of trials of the searches that were not ended
};

TEST_F(MadeBefore, RecordsAreServed) {
  auto service = reopen();
  const std::vector<Job> seen = service->watch("jobs/1");
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().state, JobState::kSucceeded);
  ASSERT_EQ(seen.back().result->groups.size(), before_.groups.size());
  // The same request is answered from the store: nothing is measured, since there is no worker.
  const Job again = service->run("again", options_, graph_);
  ASSERT_EQ(again.state, JobState::kSucceeded) << again.error;
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.result->groups[0].plan, before_.groups[0].plan);
  EXPECT_TRUE(again.result->groups[0].plan.starts_with("plan 1 "));
}

TEST_F(MadeBefore, TheSearchGoesOnFromItsTrials) {
  auto service = reopen();
  Hooks hooks;
  hooks.judge = [](const Batch& batch, Trial* trial) {
    trial->outcome = Outcome::kCorrect;
    // The bound of a sample of the check, and a time above the floor of any group, so that the trial is believed. The
    // first search is that of the fused group, which takes longer than its two parts, so these are searched as well.
    const int64_t ms = batch.id.starts_with("s8/") ? 50 : 10;
    trial->bound = batch.checks.empty() ? 1 : batch.checks.back().samples.front().bound;
    trial->samples_ns = {static_cast<int64_t>(1'000'000 * ms + number_of(trial->plan) % 900'000)};
  };
  hooks.whole = [](const KernelChain&) { return took(50'000'000); };
  FakeWorker worker(service->channel, "w", hooks, device_);
  EXPECT_GT(trials_, 60);
  const std::vector<Job> seen = service->watch("jobs/2");
  ASSERT_FALSE(seen.empty());
  ASSERT_EQ(seen.back().state, JobState::kSucceeded) << seen.back().error;
  // The three groups of the job get 200 trials each, of which 32 in all were made before. All covers take the same
  // time, so groups of other covers are searched as well. Which groups these are depends on how far planning came in
  // its time.
  const auto measured = worker.measured();
  std::map<std::string, int64_t> searched;
  for (const MeasuredPlan& each : measured)
    if (each.phase == 0) ++searched[each.batch.substr(0, each.batch.find('/'))];
  EXPECT_EQ(unfinished_.size(), 3u);
  for (const auto& [search, before] : unfinished_) EXPECT_EQ(searched[search], 200 - before) << search;
  EXPECT_GT(searched.size(), 3u);
  for (const MeasuredPlan& each : measured)
    EXPECT_TRUE(each.plan.starts_with("plan 2 ") || each.batch.find("/whole") != std::string::npos) << each.plan;
}

}  // namespace
}  // namespace wl

// A store that an older Warploom made is served and resumed. tests/data/made_before/store_plan1.db.gz has plans of
// version 1: job 1 is done, and job 2 was killed in the middle of its searches.
#include <gtest/gtest.h>

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
  hooks.judge = [](const Batch&, Trial* trial) {
    trial->outcome = Outcome::kCorrect;
    trial->samples_ns = {static_cast<int64_t>(1000 + number_of(trial->plan) % 900)};
  };
  FakeWorker worker(service->channel, "w", hooks, device_);
  EXPECT_GT(trials_, 60);
  const std::vector<Job> seen = service->watch("jobs/2");
  ASSERT_FALSE(seen.empty());
  ASSERT_EQ(seen.back().state, JobState::kSucceeded) << seen.back().error;
  // The three groups of the job want 200 trials each, of which 32 in all were made before. Groups of the other covers,
  // with which the job's cover is compared, get a quarter as many. Which groups these are depends on how far planning
  // came in its time.
  const auto measured = worker.measured();
  std::map<std::string, int64_t> searched;
  for (const MeasuredPlan& each : measured)
    if (each.phase == 0) ++searched[each.batch.substr(0, each.batch.find('/'))];
  int64_t own = 0;
  for (const auto& [search, trials] : searched) {
    EXPECT_TRUE(trials == 50 || trials > 150) << search << ": " << trials;
    own += trials > 50 ? trials : 0;
  }
  EXPECT_EQ(own, 3 * 200 - 32);
  EXPECT_GT(searched.size(), 3u);
  for (const MeasuredPlan& each : measured)
    EXPECT_TRUE(each.plan.starts_with("plan 2 ") || each.batch.find("/whole") != std::string::npos) << each.plan;
}

}  // namespace
}  // namespace wl

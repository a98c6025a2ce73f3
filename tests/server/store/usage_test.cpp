// What the store tells of the use of its records: with the record and the model that the team sees, what was missed,
// and how long searches took.
#include <gtest/gtest.h>

#include "tests/server/store/samples.h"

namespace wl {
namespace {

class StoreUsage : public ::testing::Test {
 protected:
  void SetUp() override { store_ = open_or_die({.file = file_}); }
  // Stores a job of a team with a search of a key, and a record if it has a plan. Returns the search's id.
  int64_t tuned(const std::string& team, const std::string& label, const std::string& key, const std::string& plan,
                bool own = false) {
    JobRow job = some_job(cat(team, label, key, plan));
    job.team = team;
    job.label = label;
    job.own = own;
    SearchRow wanted;
    wanted.key = key;
    wanted.environment = "gcc 12";
    wanted.strategy = "random";
    wanted.team = team;
    const int64_t search = store_->open_search(store_->create_job(job)->id, wanted, false)->id;
    EXPECT_TRUE(plan.empty() || store_->promote(some_record(key, plan), search).ok());
    return search;
  }
  int64_t missed(const std::string& team, const std::string& graph, int64_t at_ms) {
    JobRow job = some_job(cat(team, graph, at_ms));
    job.team = team;
    job.body_hash = graph;
    job.state = JobState::kNotCached;
    job.created_ms = at_ms;
    return store_->create_job(job)->id;
  }

  Scratch scratch_;
  const std::string file_ = scratch_.path("a.db");
  std::unique_ptr<Store> store_;
};

TEST_F(StoreUsage, HasTheRecordAndTheModelThatTheTeamSees) {
  tuned("", "shared.onnx", kKey, "shared");
  tuned("a", "old.onnx", kKey, "own");
  tuned("a", "new.onnx", kKey, "");
  tuned("a", "background: x", kKey, "", /*own=*/true);
  tuned("a", "", kKey, "");
  for (const char* team : {"", "a", "b"}) ASSERT_EQ(store_->add_uses(team, {{kKey, 2, 100}}, 10).value(), 1);
  const UsedKernelRows rows = store_->used_records(4, 10, 100).value();
  ASSERT_EQ(rows.records.size(), 3u);
  const auto is = [&](size_t at, const std::string& team, const std::string& plan, const std::string& model) {
    EXPECT_EQ(rows.records[at].used.team, team);
    EXPECT_EQ(rows.records[at].digest, some_record(kKey, plan).digest) << team;
    EXPECT_EQ(rows.records[at].digest, store_->record_by_key(kKey, "", {.team = team}).value()->record.digest);
    EXPECT_EQ(rows.records[at].model, model) << team;
  };
  is(0, "", "shared", "shared.onnx");
  is(1, "a", "own", "new.onnx");
  is(2, "b", "shared", "");  // the label of a job of others is theirs
  EXPECT_TRUE(rows.more.empty());
}

TEST_F(StoreUsage, CountsWhatIsLeftOutByTeam) {
  std::vector<KernelUse> uses;
  for (int i = 0; i < 5; ++i) {
    tuned("", "m", key_of(cat(i)), cat("p", i));
    uses.push_back({key_of(cat(i)), 1, 100 * (i + 1)});
  }
  ASSERT_EQ(store_->add_uses("a", uses, 10).value(), 5);
  ASSERT_EQ(store_->add_uses("b", {uses[0]}, 10).value(), 1);
  EXPECT_EQ(store_->invalidate(key_of("4")).value(), 1);
  const UsedKernelRows rows = store_->used_records(10, 10, 2).value();
  ASSERT_EQ(rows.records.size(), 3u);
  EXPECT_EQ(rows.records[0].used.use.key, key_of("4"));
  EXPECT_EQ(rows.records[0].digest, "") << "it is served no more";
  EXPECT_EQ(rows.more, (std::map<std::string, int64_t>{{"a", 3}}));
  EXPECT_TRUE(store_->used_records(11, 20, 2).value().records.empty());
}

TEST_F(StoreUsage, CountsWhatWasMissedByTeamAndGraph) {
  missed("a", "g1", 1'000);
  missed("a", "g1", 5'000);
  const int64_t last = missed("a", "g1", 4'000);
  missed("a", "g2", 5'000);
  missed("b", "g1", 6'000);
  missed("b", "g3", 1'000);
  const MissedGraphs found = store_->missed_graphs(2'000, 1).value();
  ASSERT_EQ(found.graphs.size(), 2u) << "one of each team";
  EXPECT_EQ(found.graphs[0].team, "a");
  EXPECT_EQ(found.graphs[0].last_job, last);
  EXPECT_EQ(found.graphs[0].count, 2);
  EXPECT_EQ(found.graphs[0].last_ms, 5'000);
  EXPECT_EQ(found.graphs[1].team, "b");
  EXPECT_EQ(found.all.at("a"), (std::pair<int64_t, int64_t>{2, 3}));
  EXPECT_EQ(found.all.at("b"), (std::pair<int64_t, int64_t>{1, 1}));
}

TEST_F(StoreUsage, SumsTheTimeOfReportedTrials) {
  const int64_t day = unix_ms_now() / 86'400'000;
  EXPECT_TRUE(store_->search_times(0, day + 1).value().empty());
  for (const char* team : {"a", "b", "a"}) {
    static int number = 0;
    const std::string id = cat("batch ", ++number);
    const int64_t search = tuned(team, "m", key_of(id), "");
    ASSERT_TRUE(store_->put_round(some_batch(id, search), search, 0, {some_trial(7)}).ok());
    ASSERT_EQ(store_->lease_batch(id, "lease", "w").value(), 1);
    Trial trial = some_trial(0);
    trial.check_s = 1;
    trial.measure_s = 2;
    ASSERT_EQ(store_->report(id, "lease", 1, {trial, some_trial(1)}).value(), ReportOutcome::kAccepted);
    EXPECT_EQ(store_->report(id, "lease", 1, {trial}).value(), ReportOutcome::kDuplicate) << "it counts once";
  }
  const std::vector<SearchTime> times = store_->search_times(day - 6, day + 1).value();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].team, "a");
  EXPECT_EQ(times[0].trials, 4) << "those that workers made";
  EXPECT_DOUBLE_EQ(times[0].seconds, 2 * (0.25 + 1 + 2 + 0.25));
  EXPECT_EQ(times[1].trials, 2);
  EXPECT_TRUE(store_->search_times(0, day - 7).value().empty());
}

}  // namespace
}  // namespace wl

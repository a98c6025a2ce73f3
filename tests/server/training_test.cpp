// A ranker is trained from the trials of a store, and changes a search's proposals.
#include "server/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "server/coordinator.h"
#include "server/jobs/compiler.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

constexpr int kTrials = 40;

Device some_device() {
  Device device;
  device.target = "cpu:avx2";
  device.name = "made up";
  device.threads = 2;
  device.compilers = {"gcc"};
  return device;
}

Graph product(int rows) {
  return parse(cat("graph {\n  %0 = input \"a\" : f32[", rows, ",96] normal(0,1)\n  %1 = input \"b\" : f32[96,128] ",
                   "normal(0,1)\n  %2 = contract %0 %1 \"mk,kn->mn\" : f32[", rows, ",128]\n  output \"y\" %2\n}\n"))
      .value();
}

// Stores a search whose times depend on one value of one axis, as no analytic model would predict.
void put_search(Store& store, int number, const Graph& graph) {
  JobRow job;
  job.request_id = cat("job ", number);
  job.body_hash = "hash";
  job.graph = print(graph);
  const std::string key = sha256_hex(cat("key ", number));
  const int64_t search = store.open_search(store.create_job(job)->id, {0, key, "env", "random", 0, 1}, false)->id;
  const Machine machine = machine_of(some_device()).value();
  const auto group = warploom_compiler().open(graph, machine).value();
  std::vector<Trial> trials;
  for (const std::string& plan : group->propose("random", {}, kTrials, 3)) {
    Trial trial;
    trial.trial = static_cast<int64_t>(trials.size());
    trial.plan = plan;
    trial.outcome = Outcome::kCorrect;
    trial.samples_ns = {plan.find("pack_b=1") != std::string::npos ? 900 : 2000, 5000, 5000};
    trial.samples_ns.push_back(trial.samples_ns[0]);
    trials.push_back(trial);
  }
  trials.push_back(trials[0]);
  trials.back().plan = "plan 1 of another version";
  trials.back().trial = kTrials;
  trials.push_back(trials[0]);
  trials.back().outcome = Outcome::kWrongResult;
  trials.back().trial = kTrials + 1;
  ASSERT_TRUE(store.put_round(std::nullopt, search, 0, trials).ok());
  KernelRecord record;
  record.key = key;
  record.environment = "env";
  record.device = some_device();
  record.graph = print(graph);
  record.source.entry = "wl_k";
  record.plan = trials[0].plan;
  record.samples_ns = {900};
  record.digest = record_digest(record);
  ASSERT_TRUE(store.promote(record, search).ok());
}

TEST(Training, LearnsFromAllGroupsOfAStore) {
  Scratch scratch;
  const auto store = Store::open({.file = scratch.path("a.db")}).value();
  for (int i = 0; i < 3; ++i) put_search(*store, i, product(48 + 16 * i));
  const auto training = training_rows(*store);
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_EQ(training->groups, 3);
  EXPECT_EQ(training->left_out, 3);
  ASSERT_EQ(training->rows.size(), 3u * kTrials);
  // A training row has the least time, in ns, that two samples of its trial confirm.
  EXPECT_THAT(training->rows[0].ns, ::testing::AnyOf(900, 2000));
  const auto ranker = train_ranker(training->rows);
  ASSERT_TRUE(ranker.ok() && ranker->knows("cpu/contract"));

  // The ranker generalises to a group that nobody tuned, and changes a strategy's first proposals.
  const Machine machine = machine_of(some_device()).value();
  const Graph other = product(200);
  const auto taught = warploom_compiler(*ranker)->open(other, machine).value();
  const auto untaught = warploom_compiler().open(other, machine).value();
  const auto liked = [](const std::vector<std::string>& plans) {
    return std::count_if(plans.begin(), plans.end(),
                         [](const std::string& plan) { return plan.find("pack_b=1") != std::string::npos; });
  };
  const std::vector<std::string> asked = taught->propose("ranked", {}, 16, 1);
  EXPECT_EQ(asked, taught->propose("ranked", {}, 16, 1));
  EXPECT_GE(liked(asked), 8) << liked(untaught->propose("ranked", {}, 16, 1));
  EXPECT_LT(liked(untaught->propose("ranked", {}, 16, 1)), 4);
  EXPECT_EQ(taught->propose("random", {}, 16, 1), untaught->propose("random", {}, 16, 1));
  EXPECT_EQ(taught->seeds(), untaught->seeds());
}

TEST(Training, ACoordinatorReadsTheRankerThatItIsGiven) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.ranker = scratch.path("none");
  EXPECT_EQ(Coordinator().start(options).code(), absl::StatusCode::kNotFound);
  std::ofstream(options.ranker) << "something else\n";
  const absl::Status damaged = Coordinator().start(options);
  EXPECT_EQ(damaged.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr("warploom-train"));
  std::ofstream(options.ranker) << print(Ranker());
  EXPECT_TRUE(Coordinator().start(options).ok());
  // A file beside the store that has a ranker's name but is no ranker does not keep the coordinator from starting.
  options.ranker.clear();
  std::ofstream(ranker_beside(options.store)) << "something else\n";
  EXPECT_TRUE(Coordinator().start(options).ok());
  options.ranker = "none";
  EXPECT_TRUE(Coordinator().start(options).ok());
}

}  // namespace
}  // namespace wl

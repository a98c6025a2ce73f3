// Search rounds as pure functions of trials: the first round, the state of a search, and the record that a promotion
// makes.
#include "server/jobs/search.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/server/fakes.h"

namespace wl {
namespace {

constexpr char kOneOp[] = R"(graph {
  %0 = input "x" : f32[4] normal(0,1)
  %1 = exp %0 : f32[4]
  output "y" %1
}
)";

std::vector<std::string> plans_of(const Round& round) {
  std::map<int64_t, std::string> plans;
  for (const Candidate& candidate : round.candidates) plans[candidate.trial] = candidate.plan;
  for (const Trial& trial : round.rejected) plans[trial.trial] = trial.plan;
  std::vector<std::string> out;
  for (const auto& [number, plan] : plans) out.push_back(plan);
  return out;
}

TEST(Search, FirstRoundTriesWhatWonNearbyRightAfterTheDefault) {
  const FakeGroup group(*parse(kOneOp));
  SearchInput input;
  input.compiler = &group;
  input.strategy = "random";
  input.needed = 16;
  const std::vector<std::string> alone = plans_of(next_round(input));
  ASSERT_EQ(alone.size(), 8u);
  input.near = {"plan ops=2 number=12345", alone[1]};
  const std::vector<std::string> beside = plans_of(next_round(input));
  ASSERT_EQ(beside.size(), 8u);
  EXPECT_EQ(beside[0], alone[0]);
  EXPECT_EQ(beside[1], input.near[0]);
  EXPECT_EQ(beside[2], alone[1]);
  EXPECT_EQ(std::set<std::string>(beside.begin(), beside.end()).size(), 8u) << "a plan twice";
}

// A group remembers the parsed plans of earlier trials, and must propose the same as a group that remembers nothing.
TEST(Search, ProposalsDependOnTheTrialsOnly) {
  const Graph graph = *parse(
      "graph {\n  %0 = input \"a\" : f32[64,96] normal(0,1)\n  %1 = input \"b\" : f32[96,128] normal(0,1)\n"
      "  %2 = contract %0 %1 \"mk,kn->mn\" : f32[64,128]\n  output \"y\" %2\n}\n");
  Device device = fake_device();
  device.target = "cpu:avx2";
  const Machine machine = machine_of(device).value();
  const auto lasting = warploom_compiler().open(graph, machine).value();
  std::vector<PlanOutcome> trials = {{"plan 2 of another space", true, 10, {}}};
  for (int round = 0; round < 6; ++round) {
    const auto fresh = warploom_compiler().open(graph, machine).value();
    const std::vector<std::string> plans = lasting->propose("portfolio", trials, 8, 5);
    EXPECT_EQ(plans, fresh->propose("portfolio", trials, 8, 5));
    ASSERT_EQ(plans.size(), 8u);
    for (const std::string& plan : plans) {
      for (const PlanOutcome& trial : trials) EXPECT_NE(plan, trial.plan);
      trials.push_back({plan, trials.size() % 5 != 0, 1000 + 7 * static_cast<double>(trials.size() % 11), {}});
    }
  }
  EXPECT_EQ(lasting->propose("random", {}, 8, 5),
            warploom_compiler().open(graph, machine).value()->propose("random", {}, 8, 5));
}

TEST(Search, StandsWhereItsWholeRoundsCameTo) {
  SearchInput input;
  for (int i = 0; i < 20; ++i) {
    Trial trial;
    trial.trial = i;
    trial.outcome = i < 8 ? Outcome::kWrongResult : Outcome::kCorrect;
    trial.samples_ns = {1000 - 10 * i};
    input.trials.push_back(trial);
  }
  const Standing standing = standing_of(input, 3, 50);
  EXPECT_EQ(standing.launches, 3);
  EXPECT_EQ(standing.best_ns, (std::vector<double>{0, 850}));
}

Trial timed(int64_t number, const std::string& plan, std::vector<int64_t> samples) {
  Trial trial;
  trial.trial = number;
  trial.plan = plan;
  trial.outcome = Outcome::kCorrect;
  trial.samples_ns = std::move(samples);
  return trial;
}

// Returns the plan of the record that a promotion chooses.
std::string winner(const std::vector<Trial>& finals, const std::vector<Trial>& trials) {
  const FakeGroup group(*parse(kOneOp));
  SearchInput input;
  input.compiler = &group;
  input.trials = trials;
  std::vector<PhaseTrial> all, promoted;
  for (const Trial& trial : trials) all.push_back({0, trial, "w#1"});
  for (const Trial& trial : finals) promoted.push_back({1, trial, "w#2"});
  all.insert(all.end(), promoted.begin(), promoted.end());
  const auto record = record_of_finals(input, {}, fake_device(), promoted, all, {1, 2}, 0);
  EXPECT_TRUE(record.ok() && record->has_value()) << record.status();
  return record.ok() && record->has_value() ? (*record)->plan : "none";
}

TEST(Search, TheRecordIsTheFinalistThatIsFastestUndisturbed) {
  const std::string slow = "plan ops=2 number=0", fast = "plan ops=2 number=1";
  EXPECT_EQ(winner({timed(0, slow, {1000, 1010, 1020}), timed(1, fast, {900, 910, 920})}, {}), fast);
  EXPECT_EQ(winner({timed(0, slow, {1000, 1010, 1020}), timed(1, fast, {900, 910, 1900})}, {}), fast);
  const std::string faster = "plan ops=2 number=2";
  EXPECT_EQ(
      winner({timed(0, slow, {1000, 1010, 1020}), timed(1, fast, {920, 930, 940}), timed(2, faster, {950, 960, 970})},
             {timed(1, fast, {925}), timed(2, faster, {905, 910})}),
      faster)
      << "what the search has seen counts";
}

// Reports show medians, so no kernel replaces a default kernel whose median is lower.
TEST(Search, NoRecordIsShownToBeSlowerThanTheDefault) {
  const std::string standard = "plan ops=2 number=0", other = "plan ops=2 number=1";
  EXPECT_EQ(winner({timed(0, standard, {1000, 1010, 1020}), timed(1, other, {980, 990, 1100, 1200, 1300})}, {}),
            standard);
  EXPECT_EQ(winner({timed(0, standard, {1000, 1010, 1020}), timed(1, other, {1100, 1110, 1120})},
                   {timed(1, other, {905, 910})}),
            standard)
      << "the search had seen it faster, and the promotion did not";
}

// A plan does not win by a single fast sample, of whatever phase, since such a sample may be false.
TEST(Search, ASingleSampleWinsNothing) {
  const std::string slow = "plan ops=2 number=0", honest = "plan ops=2 number=1";
  EXPECT_EQ(winner({timed(0, slow, {2086, 2090, 2100}), timed(1, honest, {1790, 1795, 1800})},
                   {timed(0, slow, {500, 2080, 2085}), timed(1, honest, {1800, 1810})}),
            honest);
  EXPECT_EQ(winner({timed(0, slow, {1000, 1010, 1020}), timed(1, honest, {900, 1800, 1900})}, {}), slow);
}

TEST(Search, APromotionHasWhatMayWinAndTheDefault) {
  const FakeGroup group(*parse(kOneOp));
  SearchInput input;
  input.compiler = &group;
  const auto promoted = [&](std::vector<int64_t> times) {
    input.trials.clear();
    for (size_t i = 0; i < times.size(); ++i)
      input.trials.push_back(timed(static_cast<int64_t>(i), cat("plan ops=2 number=", i), {times[i], times[i]}));
    std::set<int64_t> numbers;
    const Round round = final_round(input, 1, kFinalists);
    for (const Candidate& candidate : round.candidates) numbers.insert(candidate.trial);
    for (const Trial& trial : round.rejected) numbers.insert(trial.trial);
    return numbers;
  };
  EXPECT_EQ(promoted({2000, 1000, 1250, 1900, 1280, 1500, 1240, 1800}), (std::set<int64_t>{0, 1, 2, 4, 6}));
  EXPECT_EQ(promoted({3000, 1000, 1900, 1800}), (std::set<int64_t>{0, 1, 2, 3})) << "three at least, and the default";
  EXPECT_EQ(promoted({1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009}).size(), 8u);
}

TEST(Search, APromotionIsDisturbedWhenMostFinalistsWereFasterBefore) {
  const std::vector<Trial> before = {timed(0, "a", {1000, 1005}), timed(1, "b", {1100}), timed(2, "c", {1200})};
  EXPECT_FALSE(is_disturbed({timed(0, "a", {1010, 1015, 1900}), timed(1, "b", {1120, 1125, 2300})}, before));
  EXPECT_FALSE(is_disturbed({timed(0, "a", {2000}), timed(1, "b", {1110}), timed(2, "c", {1210})}, before))
      << "one of them alone";
  EXPECT_TRUE(is_disturbed({timed(0, "a", {2000}), timed(1, "b", {2100}), timed(2, "c", {1210})}, before));
  EXPECT_FALSE(is_disturbed({timed(0, "a", {2000})}, {})) << "nothing to compare with";
}

}  // namespace
}  // namespace wl

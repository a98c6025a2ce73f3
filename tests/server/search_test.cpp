// Rounds as pure functions of trials: what the first one holds, and where a search stands.
#include "server/search.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "tests/server/fakes.h"

namespace wl {
namespace {

std::vector<std::string> plans_of(const Round& round) {
  std::map<int64_t, std::string> plans;
  for (const Candidate& candidate : round.candidates) plans[candidate.trial] = candidate.plan;
  for (const Trial& trial : round.rejected) plans[trial.trial] = trial.plan;
  std::vector<std::string> out;
  for (const auto& [number, plan] : plans) out.push_back(plan);
  return out;
}

TEST(Search, FirstRoundTriesWhatWonNearbyRightAfterTheDefault) {
  const FakeGroup group(
      *parse("graph {\n  %0 = input \"x\" : f32[4] normal(0,1)\n  %1 = exp %0 : f32[4]\n  output \"y\" %1\n}\n"));
  SearchInput input;
  input.compiler = &group;
  input.strategy = "random";
  input.wanted = 16;
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

}  // namespace
}  // namespace wl

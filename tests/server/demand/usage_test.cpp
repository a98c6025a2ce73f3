// What programs ran is summed by team, device and model, and what would be worth most comes first. No reader's summary
// depends on what other teams have.
#include "server/jobs/usage.h"

#include <gtest/gtest.h>

#include "compiler/search/nearest.h"

namespace wl {
namespace {

constexpr double kSecond = 1e9, kAnHour = 3600 * kSecond;
constexpr int64_t kToday = 20'000;

// A kernel of a team that ran `calls` times today, sampled as `hours`; with the default schedule's time twice its own.
UsedKernel used(const std::string& team, const std::string& key, UseKind kind, int64_t calls, double hours) {
  UsedKernel out;
  out.demand = {.team = team, .key = key, .best_ns = 1e6, .default_ns = 2e6, .bound_ns = 1e5, .trials = 1};
  out.use = {key, calls, static_cast<int64_t>(hours * kAnHour)};
  out.demand.ns_per_day = ns_of(out.use, out.demand.best_ns);
  out.calls_per_day = static_cast<double>(calls);
  out.first_day = kToday;
  out.kind = kind;
  out.digest = "digest of " + key;
  out.device = "cpu of " + team;
  out.target = "cpu:avx2";
  out.model = "model of " + key;
  return out;
}

MissedUsage missed(const std::string& team, const std::string& model, int64_t count) {
  MissedUsage out;
  out.team = team;
  out.model = model;
  out.count = count;
  return out;
}

MissedFacts lacking(int64_t groups, const std::vector<std::string>& now, const std::set<std::string>& devices = {},
                    int64_t other_sizes = 0) {
  MissedFacts out;
  out.groups = groups;
  out.now = now;
  out.devices = devices;
  out.other_sizes = other_sizes;
  return out;
}

UsageFacts two_teams() {
  UsageFacts facts;
  facts.today = kToday;
  facts.kernels = {used("a", "k1", UseKind::kTuned, 1000, 2), used("a", "k2", UseKind::kDefault, 3'600'000, 0),
                   used("b", "k3", UseKind::kPredicted, 10, 8)};
  facts.kernels[2].first_day = kToday - 6;
  facts.costs = {{"a", {8, 40}}, {"b", {16, 80}}};
  facts.missed = {missed("b", "secret", 9), missed("a", "own", 2)};
  facts.missed_all = {{"a", {1, 2}}, {"b", {1, 9}}};
  facts.left_out = {{"a", 1}, {"b", 5}};
  return facts;
}

TEST(Usage, TheKindFollowsFromTheRecord) {
  KernelRecord record;
  record.plan = record.default_plan = "p";
  record.trials_asked = 1;
  record.outcomes[0] = 1;
  EXPECT_EQ(kind_of(record), UseKind::kDefault);
  record.plan = "q";
  EXPECT_EQ(kind_of(record), UseKind::kPredicted) << "nothing else was tried";
  record.trials_asked = 32;
  EXPECT_EQ(kind_of(record), UseKind::kPredicted) << "32 were allowed, and the budget ended after the first";
  record.outcomes[0] = 7;
  EXPECT_EQ(kind_of(record), UseKind::kTuned);
  record.plan = "p";
  EXPECT_EQ(kind_of(record), UseKind::kTuned) << "the default schedule won a search";
}

TEST(Usage, SumsTimeAndCallsByTeamDeviceAndModel) {
  const Usage usage = usage_of(two_teams(), std::nullopt, 50);
  EXPECT_EQ(usage.days, 7);
  EXPECT_EQ(usage.total.ns, (std::array<double, 3>{2 * kAnHour, 8 * kAnHour, 1 * kAnHour}))
      << "launches that were not timed count as the record's time";
  EXPECT_EQ(usage.total.calls, (std::array<int64_t, 3>{1000, 10, 3'600'000}));
  ASSERT_EQ(usage.teams.size(), 2u);
  EXPECT_EQ(usage.teams[0].team, "b") << "most time first";
  EXPECT_EQ(usage.teams[1].sum.ns, (std::array<double, 3>{2 * kAnHour, 0, 1 * kAnHour}));
  EXPECT_EQ(usage.teams[1].cost_s, 40);
  EXPECT_EQ(usage.teams[1].missed, 2);
  ASSERT_EQ(usage.devices.size(), 2u);
  EXPECT_EQ(usage.devices[0].name, "cpu of b (cpu:avx2)");
  ASSERT_EQ(usage.models.size(), 3u);
  EXPECT_EQ(usage.models[0].name, "model of k3");
  EXPECT_EQ(usage.trials, 24);
  EXPECT_EQ(usage.cost_s, 120);
  EXPECT_EQ(usage.left_out, 6);
  EXPECT_EQ(usage.missed_in_all, 2);
}

TEST(Usage, SavedIsWhatDefaultSchedulesWouldTakeLonger) {
  UsageFacts facts = two_teams();
  EXPECT_DOUBLE_EQ(usage_of(facts, "b", 50).saved_ns, 10 * 1e6);
  facts.kernels[2].demand.default_ns = 0.5e6;
  EXPECT_EQ(usage_of(facts, "b", 50).saved_ns, 0) << "never below 0";
  facts.kernels[2].demand.default_ns = 0;
  EXPECT_EQ(usage_of(facts, "b", 50).saved_ns, 0) << "the default schedule's time is not known";
}

TEST(Usage, WhatIsWorthMostComesFirstWithWhyItIsNotSearched) {
  UsageFacts facts;
  facts.today = kToday;
  facts.kernels = {used("a", "bound", UseKind::kTuned, 1, 9), used("a", "little", UseKind::kDefault, 1, 1),
                   used("a", "much", UseKind::kDefault, 1, 5), used("a", "done", UseKind::kTuned, 1, 4),
                   used("a", "rare", UseKind::kDefault, 1, 1e-5)};
  facts.kernels[0].demand.bound_ns = 1e6;
  facts.kernels[3].demand.trials = 128;
  facts.kernels[2].stopped = "no worker";
  const Usage usage = usage_of(facts, "a", 50);
  std::vector<std::string> keys;
  for (const KernelUsage& kernel : usage.kernels) keys.push_back(kernel.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"much", "little", "rare", "bound", "done"}));
  EXPECT_NEAR(usage.kernels[0].saving_per_day, 0.5 * 5 * kAnHour, 1) << "as the only search saved half";
  EXPECT_EQ(usage.kernels[0].stopped, "no worker");
  EXPECT_EQ(usage.kernels[1].stopped, "");
  EXPECT_EQ(usage.kernels[2].stopped, "a search would take longer than it saves in a month");
  EXPECT_EQ(usage.kernels[3].stopped, "it is at its bound: by the machine's peak rates none can be faster");
  EXPECT_EQ(usage.kernels[4].stopped, "it had 128 trials, the most that a kernel is given");
  facts.kernels[1].demand.trials = 9;
  facts.kernels[1].demand.best_ns = facts.kernels[1].demand.default_ns;
  EXPECT_EQ(why_not_searched(facts.kernels[1].demand, 0.5),
            "its search found nothing faster than the default schedule");
}

TEST(Usage, ATeamSeesNothingThatDependsOnOthers) {
  const UsageFacts both = two_teams();
  UsageFacts alone = both;
  alone.kernels.pop_back();
  alone.costs.erase("b");
  alone.missed.erase(alone.missed.begin());
  alone.missed_all.erase("b");
  alone.left_out.erase("b");
  EXPECT_EQ(usage_of(both, "a", 50), usage_of(alone, "a", 50));
  EXPECT_EQ(usage_of(both, "a", 50).days, 1) << "the other team counts for longer";
  EXPECT_EQ(usage_of(both, "", 50), usage_of({}, "", 50)) << "who has no team sees no team";
}

TEST(Usage, ListsHaveABound) {
  UsageFacts facts;
  facts.today = kToday;
  for (int i = 0; i < 100; ++i) {
    facts.kernels.push_back(used(cat("team ", i), cat("k", i), UseKind::kDefault, INT64_MAX, i));
    facts.missed.push_back(missed("a", "m", 1));
  }
  const Usage usage = usage_of(facts, std::nullopt, 10);
  EXPECT_EQ(usage.kernels.size(), 10u);
  EXPECT_EQ(usage.kernels[0].key, "k0") << "this many calls take longest";
  EXPECT_EQ(usage.kernels_in_all, 100);
  EXPECT_EQ(usage.missed.size(), 10u);
  EXPECT_EQ(usage.teams.size(), 32u);
  EXPECT_EQ(usage.more_teams, 68);
  EXPECT_EQ(usage.more_devices, 68);
  EXPECT_EQ(usage.more_models, 68);
  EXPECT_GT(usage.total.calls[2], 0) << "sums do not overflow";
}

TEST(Usage, WhatWasMissedIsExplained) {
  const std::string said = "2 of 3 kernels are not in the store";
  EXPECT_EQ(why_missed(said, lacking(0, {})), said) << "the graph was not planned";
  EXPECT_EQ(why_missed(said, lacking(3, {})), said + "; by now all 3 are");
  EXPECT_EQ(why_missed(said, lacking(3, {"exp f32[8]"})),
            said + "; still missing: 1 of 3, exp f32[8]; nothing like it was tuned");
  EXPECT_EQ(why_missed(said, lacking(3, {"exp f32[8]", "abs"}, {"d1", "d2", "d3", "d4", "d5"})),
            said +
                "; still missing: 2 of 3, exp f32[8] and others; records of the same kernels exist for other devices: "
                "d1, d2, d3 and 2 more");
  EXPECT_EQ(
      why_missed(said, lacking(1, {"exp f32[8]"}, {}, 4)),
      said + "; still missing: 1 of 1, exp f32[8]; of the same operations with other sizes the store has 4 records");
  EXPECT_EQ(kin_of("%0 = input \"x1\" : f32[64, 32]"), kin_of("%0 = input \"x1\" : f32[8,1]"));
  EXPECT_NE(kin_of("%0 = input \"x1\" : f32[64]"), kin_of("%0 = input \"x1\" : f16[64]"));
}

}  // namespace
}  // namespace wl

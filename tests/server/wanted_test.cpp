// Which groups of a plan get trials follows from the plan and the records alone.
#include "server/jobs/wanted.h"

#include <gtest/gtest.h>

#include "tests/server/fakes.h"

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

  std::map<int, int64_t> wanted() const { return wanted_trials(plan, records, without, 48); }

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

}  // namespace
}  // namespace wl

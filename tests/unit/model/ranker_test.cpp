#include "compiler/model/ranker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/model/ranker_train.h"

namespace wl {
namespace {

// Returns rows of a synthetic kind of kernel, whose time depends on three features and on a factor of its own for every
// group.
std::vector<RankRow> made_up(const std::string& kind, int groups, uint64_t seed, double analytic = 0) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<RankRow> rows;
  for (int g = 0; g < groups; ++g) {
    const double scale = std::pow(10, g % 4);
    for (int i = 0; i < 60; ++i) {
      RankRow row;
      row.group = cat("group ", g);
      row.features.kind = kind;
      row.features.values.resize(feature_names().size());
      for (float& value : row.features.values) value = unit(random);
      const std::vector<float>& v = row.features.values;
      row.ns = 1000 * scale * std::exp(v[3] + (v[7] > 0.5 ? 0.8 : 0) - 0.5 * v[20]);
      if (analytic > 0) row.features.analytic_ns = analytic * row.ns * std::exp(0.05 * v[11]);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Returns the share of pairs of rows whose times the ranker puts in the right order. A pair counts if both rows belong
// to one group and one time is at least 5 % shorter.
double right_pairs(const Ranker& ranker, const std::vector<RankRow>& rows) {
  double right = 0, all = 0;
  for (const RankRow& a : rows)
    for (const RankRow& b : rows) {
      if (a.group != b.group || a.ns >= b.ns * 0.95) continue;
      all += 1;
      right += ranker.log_ns(a.features) < ranker.log_ns(b.features) ? 1 : 0;
    }
  return right / all;
}

TEST(Ranker, LearnsAnOrderThatHoldsInGroupsItNeverSaw) {
  const auto ranker = train_ranker(made_up("cpu/rows", 6, 1));
  ASSERT_TRUE(ranker.ok()) << ranker.status();
  ASSERT_TRUE(ranker->knows("cpu/rows"));
  EXPECT_EQ(ranker->forests.at("cpu/rows").rows, 360);
  EXPECT_EQ(ranker->forests.at("cpu/rows").groups, 6);
  EXPECT_GT(right_pairs(*ranker, made_up("cpu/rows", 3, 99)), 0.85);
}

TEST(Ranker, LeavesTheAnalyticModelAloneWhereItKnowsNothing) {
  const Ranker none;
  const std::vector<RankRow> rows = made_up("cpu/contract", 2, 5, 3.0);
  for (const RankRow& row : rows) EXPECT_EQ(none.log_ns(row.features), std::log(row.features.analytic_ns));
  // A single group gives no pairs to train on, and trees of another kind of kernel are not used.
  const auto ranker = train_ranker(made_up("cpu/rows", 1, 1));
  ASSERT_TRUE(ranker.ok()) << ranker.status();
  EXPECT_FALSE(ranker->knows("cpu/rows"));
  const auto other = train_ranker(made_up("cpu/rows", 3, 1));
  ASSERT_TRUE(other.ok()) << other.status();
  for (const RankRow& row : rows) EXPECT_EQ(other->log_ns(row.features), std::log(row.features.analytic_ns));
}

// Training that starts from a nearly correct analytic model keeps its accuracy even with few rows.
TEST(Ranker, StartsFromTheAnalyticModel) {
  std::vector<RankRow> rows = made_up("cpu/contract", 2, 8, 2.0);
  const auto ranker = train_ranker(rows);
  ASSERT_TRUE(ranker.ok()) << ranker.status();
  EXPECT_GT(right_pairs(*ranker, made_up("cpu/contract", 3, 77, 2.0)), 0.97);
}

TEST(Ranker, IsTheSameEveryTimeAndReadsBack) {
  const auto once = train_ranker(made_up("cpu/map", 3, 4)), again = train_ranker(made_up("cpu/map", 3, 4));
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(print(*once), print(*again));
  const auto read = parse_ranker(print(*once));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *once);
}

TEST(Ranker, RefusesOtherVersionsAndDamage) {
  const std::string text = print(train_ranker(made_up("cpu/map", 2, 4)).value());
  const auto code_of = [](const std::string& changed) { return parse_ranker(changed).status(); };
  // Files with another list of features, by version or by name, are refused.
  for (const auto& [from, to] : {std::pair{cat("features ", kFeaturesVersion), cat("features ", kFeaturesVersion + 1)},
                                 {cat(" ", feature_names()[5], " "), std::string(" something ")}}) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    const absl::Status status = code_of(other);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find("train it again"), std::string::npos) << status;
  }
  EXPECT_EQ(code_of("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of("warploom ranker 9" + text.substr(17)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(text.substr(0, text.size() / 2)).code(), absl::StatusCode::kInvalidArgument);
  // A child node must follow its parent, because otherwise the tree could contain a cycle.
  const std::string head = text.substr(0, text.find("forest"));
  EXPECT_TRUE(parse_ranker(head + "forest k 2 1 1\ntree 3\nsplit 0 0.5 1 2\nleaf 1\nleaf 2\n").ok());
  for (const char* bad :
       {"split 0 0.5 0 2", "split 0 0.5 1 3", "split 999 0.5 1 2", "split 0 x 1 2", "leaf nan", "leaf", "twig 1"})
    EXPECT_EQ(code_of(cat(head, "forest k 2 1 1\ntree 3\n", bad, "\nleaf 1\nleaf 2\n")).code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
}

}  // namespace
}  // namespace wl

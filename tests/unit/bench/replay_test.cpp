// The reader and writer of results of autotuners in the T4 file format, and the scores of replayed searches.
#include <gtest/gtest.h>

#include "bench/replay/score.h"

namespace wl {
namespace {

// Returns a T4 table over the axes x in 1..4 and y in {"a", "b"}, whose times grow with x and y. One point failed, and
// one is missing.
std::string others_table() {
  nlohmann::json results = nlohmann::json::array();
  for (int x = 4; x >= 1; --x)
    for (const char* y : {"b", "a"}) {
      if (x == 2 && *y == 'b') continue;
      const double ms = x + (*y == 'b' ? 10 : 0);
      nlohmann::json row = {{"configuration", {{"x", x}, {"y", y}, {"fixed", 7}}},
                            {"times", {{"runtimes", {ms, ms, 100 * ms}}, {"compilation", 5}}},
                            {"invalidity", x == 4 && *y == 'a' ? "runtime" : "correct"}};
      results.push_back(row);
    }
  return nlohmann::json{{"metadata", {{"timeunit", "milliseconds"}}}, {"results", results}}.dump();
}

TEST(T4, ReadsOthersTables) {
  const auto table = parse_t4("other", others_table());
  ASSERT_TRUE(table.ok()) << table.status();
  const Space& space = (*table)->space;
  ASSERT_EQ(space.axes.size(), 2u);
  EXPECT_EQ(space.axes[0].values, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(space.count(), 7u);
  EXPECT_FALSE(space.is_legal({1, 1}));
  EXPECT_TRUE(space.is_legal({1, 0}));
  EXPECT_EQ((*table)->best_ns, 1e6);
  EXPECT_FALSE((*table)->results.at({3, 0}).correct);
}

TEST(T4, RefusesWhatItIsNot) {
  EXPECT_FALSE(parse_t4("x", "{}").ok());
  EXPECT_FALSE(parse_t4("x", "no json").ok());
}

TEST(T4, ReadsWhatItWrites) {
  const nlohmann::json warploom = {
      {"prefix", "plan 1"},
      {"axes", {{{"name", "vector"}, {"values", {16, 4}}}, {{"name", "compiler"}, {"values", {0, 1}}}}},
      {"seeds", {"plan 1 vector=4 compiler=clang", "plan 1 vector=8 compiler=gcc"}}};
  const nlohmann::json results = {t4_result("plan 1 vector=16 compiler=gcc", Outcome::kCorrect, {30, 20}, 0.1),
                                  t4_result("plan 1 vector=4 compiler=clang", Outcome::kTimeout, {}, 0.1)};
  const auto table = parse_t4("own", t4_file(warploom, results).dump());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->best_ns, 20);
  EXPECT_EQ((*table)->space.seeds, (std::vector<Point>{{1, 1}}));
  EXPECT_EQ((*table)->space.text({0, 0}), "plan 1 vector=16 compiler=gcc");
}

TEST(Score, RandomCurveIsTheExpectedMinimum) {
  const auto table = parse_t4("other", others_table());
  ASSERT_TRUE(table.ok()) << table.status();
  // The expected best time of two random trials: the mean, over all pairs of the table's seven results, of the
  // shorter time. A failed result never has the shorter time.
  std::vector<double> times;
  for (const auto& [point, result] : (*table)->results) times.push_back(result.correct ? result.ns : 1e300);
  double sum = 0;
  int sets = 0;
  for (size_t a = 0; a < times.size(); ++a)
    for (size_t b = a + 1; b < times.size(); ++b, ++sets) sum += std::min(times[a], times[b]);
  EXPECT_NEAR(random_curve(**table, 2)[1], sum / sets, 1);
  EXPECT_EQ(random_curve(**table, 7)[6], 1e6);
}

TEST(Score, BestAtOnceIsOneAndRandomIsZero) {
  const auto table = parse_t4("other", others_table());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_DOUBLE_EQ(methodology_score(**table, Curve(7, (*table)->best_ns)), 1);
  EXPECT_NEAR(methodology_score(**table, random_curve(**table, 7)), 0, 1e-12);
  EXPECT_GE(methodology_budget(**table), 2);
}

}  // namespace
}  // namespace wl

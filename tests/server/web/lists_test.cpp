// The store's answers to the queries of the web pages: points of curves, and records by machine and model.
#include <gtest/gtest.h>

#include <set>

#include "server/web/curves.h"
#include "tests/server/store/samples.h"

namespace wl {
namespace {

std::vector<int64_t> numbers_of(const TrialPoints& points) {
  std::vector<int64_t> numbers;
  for (const TrialPoint& point : points) numbers.push_back(point.trial);
  return numbers;
}

void put(Store& store, int64_t search, int64_t phase, const std::vector<int64_t>& numbers) {
  std::vector<Trial> trials;
  for (const int64_t number : numbers) trials.push_back(some_trial(number));
  ASSERT_TRUE(store.put_round(std::nullopt, search, phase, trials).ok());
}

TEST(WebLists, TrialsOfRoundsAlone) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = make_search(*store);
  Trial failed = some_trial(2);
  failed.outcome = Outcome::kTimeout;
  failed.samples_ns.clear();
  put(*store, search, 0, {0, 1});
  put(*store, search, 1, {0, 1});
  ASSERT_TRUE(store->put_round(std::nullopt, search, 0, {failed}).ok());
  const TrialPoints points = *store->trial_points(search, 0, 100);
  EXPECT_EQ(numbers_of(points), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(points[0].ns, 95) << "the second least of 100, 90, 95";
  EXPECT_EQ(points[2].ns, 0);
  EXPECT_EQ(points[2].outcome, Outcome::kTimeout);
  EXPECT_EQ(numbers_of(*store->trial_points(search, 1, 1)), std::vector<int64_t>{1});
  EXPECT_TRUE(store->trial_points(search + 1, 0, 100)->empty());
}

// Rounds that are measured at the same time may end in any order, so a curve may have gaps, which are filled later.
TEST(WebLists, ACurveFillsItsGaps) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = make_search(*store);
  Curves curves(store.get());
  const auto is = [&](const std::vector<int64_t>& wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (numbers_of(**curves.of(search)) != wanted) {
      if (std::chrono::steady_clock::now() > end) return ::testing::AssertionFailure() << "not after a minute";
    }
    return ::testing::AssertionSuccess();
  };
  EXPECT_TRUE(is({}));
  put(*store, search, 0, {0, 1, 4, 5});
  EXPECT_TRUE(is({0, 1, 4, 5}));
  put(*store, search, 0, {2, 6});
  EXPECT_TRUE(is({0, 1, 2, 4, 5, 6}));
  put(*store, search, 0, {3});
  EXPECT_TRUE(is({0, 1, 2, 3, 4, 5, 6}));
}

// Returns the keys that a filter lists, read in pages of two.
std::multiset<std::string> listed(Store& store, const RecordFilter& filter, const Reader& reader = {}) {
  std::multiset<std::string> keys;
  std::optional<RecordCursor> after;
  for (;;) {
    const std::vector<RecordRow> page = *store.list_records(after, 2, reader, filter);
    if (page.empty()) return keys;
    for (const RecordRow& row : page) keys.insert(row.record.key);
    after = RecordCursor{page.back().created_ms, page.back().record.digest};
  }
}

TEST(WebLists, RecordsByMachineAndModel) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  std::multiset<std::string> all, first;
  for (int i = 0; i < 12; ++i) {
    const std::string key = key_of(cat(i));
    JobRow job = some_job(cat("r", i));
    job.label = i % 3 == 0 ? "a.onnx" : "b.onnx";
    job.team = i < 9 ? "" : "vision";
    const int64_t id = store->create_job(job)->id;
    const auto search = store->open_search(id, {0, key, "gcc 12", "s", 0, 0, job.team}, false);
    ASSERT_TRUE(search.ok()) << search.status();
    KernelRecord record = some_record(key, "p");
    record.device.name = i % 2 == 0 ? "one" : "two";
    record.digest = record_digest(record);
    ASSERT_TRUE(store->promote(record, search->id).ok());
    if (i < 9) all.insert(key);
    if (i < 9 && i % 2 == 0) first.insert(key);
  }
  EXPECT_EQ(listed(*store, {}), all);
  EXPECT_EQ(listed(*store, {.machine = "cpu:avx2 one"}), first);
  EXPECT_EQ(listed(*store, {.model = "a.onnx"}), (std::multiset<std::string>{key_of("0"), key_of("3"), key_of("6")}));
  EXPECT_EQ(listed(*store, {.machine = "cpu:avx2 two", .model = "a.onnx"}), std::multiset<std::string>{key_of("3")});
  EXPECT_TRUE(listed(*store, {.machine = "cpu:avx2"}).empty());
  EXPECT_TRUE(listed(*store, {.model = "c.onnx"}).empty());
  const RecordCounts counts = *store->record_counts(10);
  EXPECT_EQ(counts.machines, (RecordCounts::Names{{"cpu:avx2 one", 5}, {"cpu:avx2 two", 4}}));
  EXPECT_EQ(counts.models, (RecordCounts::Names{{"a.onnx", 3}, {"b.onnx", 6}}));
  const Reader vision{.team = "vision"};
  EXPECT_EQ(listed(*store, {.model = "a.onnx"}, vision), std::multiset<std::string>{key_of("9")})
      << "a team sees shared records, but not which jobs of others searched them";
  EXPECT_EQ(store->record_counts(1, vision)->machines, (RecordCounts::Names{{"cpu:avx2 one", 6}}));
  EXPECT_EQ(listed(*store, {}, {.every = true}).size(), 12u);
}

}  // namespace
}  // namespace wl

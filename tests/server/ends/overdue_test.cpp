// How long a lease may last before its worker counts as slow and gets work last.
#include "server/engine/bounds/overdue.h"

#include <gtest/gtest.h>

namespace wl {
namespace {

TEST(Overdue, FollowsFromWhatABatchHasAndFromWhatOthersTook) {
  Batch batch;
  batch.candidates.resize(4);
  batch.recipe.deadline_ns = 10'000'000'000;
  Overdue overdue(15);
  EXPECT_EQ(Overdue::most_seconds(batch), 60 + 4 * (60 + 4 * 10));
  EXPECT_EQ(overdue.patience("d", batch, 0), 15);
  EXPECT_EQ(overdue.patience("d", batch, 3), 120);
  EXPECT_EQ(overdue.patience("d", batch, 1000), Overdue::most_seconds(batch));
  for (double seconds : {1.0, 20.0, 2.0}) overdue.reported("d", batch, seconds);
  EXPECT_EQ(overdue.patience("d", batch, 0), 80) << "four times the slowest";
  EXPECT_EQ(overdue.patience("other", batch, 0), 15);
  batch.phase = 1;
  EXPECT_EQ(overdue.patience("d", batch, 0), 15) << "a promotion is another thing";
}

TEST(Overdue, NotesCallersOrWorkersThatNobodyKnows) {
  Overdue overdue(15);
  const Overdue::Clock::time_point now{};
  overdue.noted("lab/one", now);
  overdue.noted("local/one", now);
  EXPECT_TRUE(overdue.is_noted("lab/two", now));
  EXPECT_FALSE(overdue.is_noted("local/two", now)) << "it may be another's";
  EXPECT_TRUE(overdue.is_noted("local/one", now + std::chrono::seconds(59)));
  EXPECT_FALSE(overdue.is_noted("local/one", now + std::chrono::seconds(60)));
  overdue.noted("local/one", now);
  EXPECT_TRUE(overdue.is_noted("local/one", now + std::chrono::seconds(119))) << "longer each time";
}

TEST(Overdue, LetsThoseWhoAreKnownComeFirst) {
  Overdue overdue(15);
  const Overdue::Clock::time_point now{};
  using Names = std::vector<std::string>;
  EXPECT_EQ(overdue.last_of({"lab/one", "local/two"}, now), Names());
  overdue.noted("local/one", now);
  EXPECT_EQ(overdue.last_of({"lab/one", "local/one", "local/two"}, now), (Names{"local/one", "local/two"}));
  EXPECT_EQ(overdue.last_of({"local/one", "local/two"}, now), Names{"local/one"}) << "the other may be honest";
  EXPECT_EQ(overdue.last_of({"local/one"}, now), Names()) << "there is nobody else";
  // A second worker of an unknown caller was slow. Each such worker lengthens the time for which all workers of unknown
  // callers come last.
  overdue.noted("local/two", now);
  EXPECT_EQ(overdue.last_of({"lab/one", "local/new"}, now + std::chrono::seconds(100)), Names{"local/new"});
  overdue.noted("lab/one", now);
  EXPECT_EQ(overdue.last_of({"lab/one", "local/new"}, now), Names{"lab/one"}) << "who is known is slow as well";
}

}  // namespace
}  // namespace wl

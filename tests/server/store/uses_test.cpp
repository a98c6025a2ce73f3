// Sums of what programs run, by team, kernel and day.
#include <gtest/gtest.h>

#include "tests/server/store/samples.h"

namespace wl {
namespace {

// A store with a shared record of kKey, and one of the key "of team a" for that team alone.
class StoreUses : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = open_or_die({.file = file_});
    ASSERT_TRUE(store_->promote(some_record(kKey, "p"), make_search(*store_)).ok());
    JobRow job = some_job("of a");
    job.team = "a";
    SearchRow wanted;
    wanted.key = own_;
    wanted.environment = "gcc 12";
    wanted.strategy = "random";
    wanted.team = "a";
    const int64_t search = store_->open_search(store_->create_job(job)->id, wanted, false)->id;
    ASSERT_TRUE(store_->promote(some_record(own_, "q"), search).ok());
  }
  // Returns the sums since a day as texts: "TEAM KEY CALLS NS FIRST-DAY", where the key is "shared" or "own".
  std::vector<std::string> sums(int64_t since, int limit = 10) {
    std::vector<std::string> texts;
    const auto used = store_->most_used(since, 1'000, limit);
    EXPECT_TRUE(used.ok()) << used.status();
    for (const KernelUseOfTeam& each : *used)
      texts.push_back(cat(each.team, " ",
                          each.use.key == kKey   ? "shared"
                          : each.use.key == own_ ? "own"
                                                 : each.use.key,
                          " ", each.use.calls, " ", each.use.ns, " ", each.first_day));
    return texts;
  }
  using Texts = std::vector<std::string>;

  Scratch scratch_;
  const std::string file_ = scratch_.path("a.db"), own_ = key_of("of team a");
  std::unique_ptr<Store> store_;
};

TEST_F(StoreUses, AreSummedByTeamAndKeyMostTimeFirst) {
  EXPECT_EQ(store_->add_uses("a", {{kKey, 2, 100}, {own_, 1, 500}}, 10).value(), 2);
  EXPECT_EQ(store_->add_uses("b", {{kKey, 1, 300}}, 11).value(), 1);
  EXPECT_EQ(store_->add_uses("a", {{kKey, 3, 50}}, 11).value(), 1);
  EXPECT_EQ(store_->add_uses("a", {{kKey, 4, 60}}, 11).value(), 1);
  EXPECT_EQ(sums(10), (Texts{"a own 1 500 10", "b shared 1 300 11", "a shared 9 210 10"}));
  EXPECT_EQ(sums(11), (Texts{"b shared 1 300 11", "a shared 7 110 11"}));
  EXPECT_EQ(sums(10, 1), (Texts{"a own 1 500 10", "b shared 1 300 11"})) << "one of each team";
}

TEST_F(StoreUses, OfRecordsThatTheTeamMaySeeOnly) {
  EXPECT_EQ(store_->add_uses("b", {{own_, 1, 500}, {key_of("of nobody"), 1, 500}}, 10).value(), 0);
  EXPECT_EQ(store_->add_uses("", {{own_, 1, 500}}, 10).value(), 0);
  EXPECT_TRUE(sums(0).empty());
}

TEST_F(StoreUses, SurviveTheProcessAndEndAfterAWeek) {
  EXPECT_EQ(store_->add_uses("", {{kKey, 1, 100}}, 10).value(), 1);
  store_.reset();
  store_ = open_or_die({.file = file_});
  EXPECT_EQ(sums(0), (Texts{" shared 1 100 10"}));
  EXPECT_EQ(store_->add_uses("", {{kKey, 1, 100}}, 16).value(), 1);
  EXPECT_EQ(sums(0), (Texts{" shared 2 200 10"}));
  EXPECT_EQ(store_->add_uses("", {{kKey, 1, 100}}, 17).value(), 1);
  EXPECT_EQ(sums(0), (Texts{" shared 2 200 16"}));
}

// Clients may say anything within the limits of the protocol.
TEST_F(StoreUses, SumsHaveABound) {
  constexpr int64_t kMost = 1'000'000'000'000'000;
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(store_->add_uses("", {{kKey, kMost, kMost}}, 10).value(), 1);
  EXPECT_EQ(sums(0), (Texts{cat(" shared ", 3 * kMost, " ", 3 * kMost, " 10")}));
  const std::string huge = std::to_string(int64_t{1} << 61);
  EXPECT_EQ(store_->add_uses("", {{kKey, int64_t{1} << 61, int64_t{1} << 61}}, 10).value(), 1);
  EXPECT_EQ(sums(0), (Texts{cat(" shared ", huge, " ", huge, " 10")}));
  for (int64_t day = 11; day < 20; ++day)
    EXPECT_TRUE(store_->add_uses("", {{kKey, int64_t{1} << 61, int64_t{1} << 61}}, day).ok());
  EXPECT_TRUE(store_->most_used(0, 100, 10).ok()) << "the sum over days";
}

}  // namespace
}  // namespace wl

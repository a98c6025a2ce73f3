// What a coordinator knows of the generations of records that others have signed (its head for each signer).
#include <gmock/gmock.h>

#include <optional>

#include "tests/server/upstream/chain.h"

namespace wl {
namespace {

class Heads : public Chain {
 protected:
  std::vector<KernelRecord> tune_at(Service& at, const std::string& request = "r") {
    FakeWorker worker(at.channel, "one");
    const Job job = at.run(request, trials(8));
    EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
    return all_records(at);
  }
  // Starts a team's coordinator that has fetched all records of a site, `made`. The site has declared the first of them
  // invalid and ended, and the team has not heard of this.
  void leave_behind(std::optional<Service>& team, std::vector<KernelRecord>& made) {
    std::optional<Service> site(options("site"));
    made = tune_at(*site);
    CoordinatorOptions below = options("team", "site");
    below.signers = signers({"site"});
    team.emplace(below);
    for (const KernelRecord& record : made) ASSERT_TRUE(team->record(record.key).ok());
    team.reset();
    site->invalidate(made[0].key);
    site.reset();
    below.upstream.address.clear();
    team.emplace(below);
  }
  static void expect_excluded(const absl::Status& status) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("is right any more"));
  }
};

TEST_F(Heads, PassTheChainWithTheRecordsThatTheyAreAbout) {
  std::optional<Service> site(options("site"));
  const std::vector<KernelRecord> made = tune_at(*site);
  CoordinatorOptions below = options("team", "site"), last = options("laptop", "team");
  below.signers = last.signers = signers({"site"});
  Service team(below), laptop(last);
  ASSERT_TRUE(laptop.record(made[0].key).ok());
  const std::optional<StoreHead> heard = head(laptop, "site");
  ASSERT_TRUE(heard.has_value()) << "one that is asked for with the first record of its signer";
  EXPECT_TRUE(is_sound(*heard));
  EXPECT_TRUE(head(laptop, "laptop").has_value()) << "its own";
  EXPECT_EQ(head(*site, "laptop"), std::nullopt);
}

// A coordinator refuses a record that its upstream still serves if the head of the record's signer excludes this
// record.
TEST_F(Heads, ExcludeRecordsThatAnUpstreamStillHas) {
  std::optional<Service> team;
  std::vector<KernelRecord> made;
  leave_behind(team, made);
  if (HasFatalFailure()) return;
  ASSERT_TRUE(team->record(made[0].key).ok());
  // The laptop has heard from the site itself that the record is invalid.
  Service site(options("site"));
  CoordinatorOptions last = options("laptop", "site");
  last.signers = signers({"site"});
  {
    Service laptop(last);
    ASSERT_TRUE(laptop.record(made[1].key).ok());
    while (!head(laptop, "site")) std::this_thread::yield();
  }
  last.upstream.address = address("team");
  Service laptop(last);
  EXPECT_TRUE(laptop.record(made[1].key).ok());
  expect_excluded(laptop.record(made[0].key).status());
}

// A coordinator does not take back a record of its own that it has declared invalid, even if others have fetched it
// before.
TEST_F(Heads, OfItsOwnExcludeWhatOthersStillHave) {
  std::optional<Service> team;
  std::vector<KernelRecord> made;
  leave_behind(team, made);
  if (HasFatalFailure()) return;
  CoordinatorOptions asking = options("site", "team");
  asking.signers = signers({"site"});
  Service site(asking);
  expect_excluded(site.record(made[0].key).status());
  EXPECT_TRUE(site.record(made[1].key).ok());
}

// Records that the site signs anew reach the coordinators below with their new signature, and so do the site's heads.
TEST_F(Heads, FollowWhatIsSignedAnew) {
  std::optional<Service> site(options("site"));
  const std::vector<KernelRecord> made = tune_at(*site);
  CoordinatorOptions below = options("team", "site");
  below.signers = signers({"site"});
  below.upstream.check_s = 0.05;
  Service team(below);
  for (const KernelRecord& record : made) ASSERT_TRUE(team.record(record.key).ok());
  const int64_t before = head(*site, "site")->oldest;
  run_in(store("site"), "DELETE FROM floors WHERE scope <> 'last'");  // makes the store like that of an older version
  site.reset();
  site.emplace(options("site"));
  while (head(*site, "site")->oldest <= before) std::this_thread::yield();
  while (head(team, "site")->oldest <= before) std::this_thread::yield();
  for (const KernelRecord& record : made) {
    const absl::StatusOr<KernelRecord> there = team.record(record.key);
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_EQ(there->digest, record.digest);
    EXPECT_GE(there->generation, head(team, "site")->oldest);
    EXPECT_TRUE(check_signature(*there, {{record.signed_by, "site"}}).ok());
  }
}

// A site that records were offered to knows which of them are no longer right.
TEST_F(Heads, AreToldToTheUpstreamByWhoOffers) {
  CoordinatorOptions above = options("site");
  above.signers = signers({"laptop"});
  Service site(above);
  CoordinatorOptions last = options("laptop", "site");
  last.upstream.offer = OfferRule::kAll;
  last.upstream.check_s = 0.05;
  Service laptop(last);
  while (!head(site, "laptop")) std::this_thread::yield();
  EXPECT_TRUE(is_sound(*head(site, "laptop")));
}

}  // namespace
}  // namespace wl

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
  // Starts the coordinator "team" with all records (`made`) of the coordinator "site". Site has declared the first of
  // them invalid and was then stopped, and team has not heard of this.
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

// A coordinator refuses a record that its upstream still serves if the head of the record's signer declares the record
// invalid.
TEST_F(Heads, ExcludeRecordsThatAnUpstreamStillHas) {
  std::optional<Service> team;
  std::vector<KernelRecord> made;
  leave_behind(team, made);
  if (HasFatalFailure()) return;
  ASSERT_TRUE(team->record(made[0].key).ok());
  // The coordinator "laptop" learns from the coordinator "site" itself that site's record is invalid.
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

// A coordinator has declared a record of its own invalid. It does not accept the record from other coordinators, which
// fetched it before.
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

// If the coordinator "site" signs its records anew, the coordinators that fetch from it get the records with the new
// signatures, and site's new head.
TEST_F(Heads, FollowWhatIsSignedAnew) {
  std::optional<Service> site(options("site"));
  const std::vector<KernelRecord> made = tune_at(*site);
  CoordinatorOptions below = options("team", "site");
  below.signers = signers({"site"});
  below.upstream.check_s = 0.05;
  Service team(below);
  for (const KernelRecord& record : made) ASSERT_TRUE(team.record(record.key).ok());
  const int64_t before = head(*site, "site")->oldest;
  // Without floors (least valid generations of records) the store is like that of an older version, so the coordinator
  // signs its records anew when it starts.
  run_in(store("site"), "DELETE FROM floors WHERE scope <> 'last'");
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

// A coordinator that offers records to its upstream also sends its head, from which the upstream learns which of the
// records are no longer valid.
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

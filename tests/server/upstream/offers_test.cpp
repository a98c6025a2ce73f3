// Offers: records that a coordinator made arrive at its upstream once, by the rules of both coordinators.
#include <gmock/gmock.h>

#include <optional>
#include <thread>

#include "proto/dial.h"
#include "server/services/callers.h"
#include "tests/server/upstream/chain.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

class Offers : public Chain {
 protected:
  Offers() {
    add_row("team vision publish=never");
    token("laptop", kCache);
    token("of_vision", kCache, "vision");
    token("client", kClient | kWorker);
  }
  void add_row(const std::string& row) const {
    std::ofstream(callers(), std::ios::app) << row << "\n";
    chmod(callers().c_str(), 0600);
  }
  std::string callers() const { return scratch.path("callers"); }
  void token(const std::string& name, Roles roles, const std::string& team = "") const {
    std::ofstream(scratch.path(name + ".token")) << make_token(callers(), name, roles, 3600, team).value();
  }
  CoordinatorOptions site_options() const {
    CoordinatorOptions out = options("site");
    out.callers = callers();
    out.signers = signers({"laptop"});
    return out;
  }
  CoordinatorOptions laptop_options(OfferRule rule, const std::string& shown = "laptop") const {
    CoordinatorOptions out = options("laptop", "site");
    out.lease_s = 15;  // the lease is so long that no worker counts as lost during a test
    out.upstream.offer = rule;
    out.upstream.dialled.token_file = scratch.path(shown + ".token");
    return out;
  }
  static std::vector<v1::KernelSummary> listed(const Service& at) {
    grpc::ClientContext context;
    v1::ListKernelsResponse page;
    EXPECT_TRUE(at.kernels->ListKernels(&context, {}, &page).ok());
    return {page.kernels().begin(), page.kernels().end()};
  }
  // Waits until the coordinator "laptop" has offered every record that it serves to the coordinator "site".
  void wait_until_offered() const {
    while (number_in(store("laptop"), "SELECT count(*) FROM records WHERE blessed = 1 AND offered = 0") > 0)
      std::this_thread::yield();
  }
  // Uploads the object of a record to the coordinator "site" and offers the record. The caller uses the token in the
  // file `shown`.token.
  absl::StatusOr<v1::OfferKernelResponse> offer(const std::string& shown, const KernelRecord& record,
                                                const std::string& bytes) const {
    DialOptions how;
    how.token_file = scratch.path(shown + ".token");
    const auto channel = dial(address("site"), how).value();
    grpc::ClientContext first, second;
    (void)upload(*v1::BlobStore::NewStub(channel), &first, record.object_sha256, bytes);
    v1::OfferKernelRequest request;
    *request.mutable_record() = to_proto(record);
    v1::OfferKernelResponse answer;
    const grpc::Status status = v1::KernelStore::NewStub(channel)->OfferKernel(&second, request, &answer);
    if (!status.ok()) return from_grpc(status);
    return answer;
  }
};

TEST_F(Offers, WhatIsConfirmedArrivesOnce) {
  Service site(site_options());
  std::vector<KernelRecord> made;
  for (int start = 0; start < 2; ++start) {
    Service laptop(laptop_options(OfferRule::kConfirmed));
    if (start == 0) {
      FakeWorker one(laptop.channel, "one/w"), two(laptop.channel, "two/w");
      wait_for_workers(store("laptop"), 2);
      const Job job = laptop.run("r", trials(16));
      ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
      made = all_records(laptop);
    }
    wait_until_offered();
    for (const KernelRecord& record : made) {
      ASSERT_FALSE(record.confirmed_by.empty());
      EXPECT_EQ(bytes_of(site.channel, record.key), bytes_of(laptop.channel, record.key));
      EXPECT_EQ(object(site.channel, record.object_sha256).value(),
                object(laptop.channel, record.object_sha256).value());
    }
  }
  EXPECT_EQ(listed(site).size(), made.size());
  EXPECT_EQ(number_in(store("site"), "SELECT count(*) FROM records WHERE origin = 2"), std::ssize(made));
  expect_sound(store("site"));
}

// Records that were made while the upstream was away are offered even after the coordinator has restarted.
TEST_F(Offers, SurviveARestart) {
  {
    Service laptop(laptop_options(OfferRule::kConfirmed));
    FakeWorker one(laptop.channel, "one/w"), two(laptop.channel, "two/w");
    wait_for_workers(store("laptop"), 2);
    ASSERT_EQ(laptop.run("r", trials(16)).state, JobState::kSucceeded);
  }
  EXPECT_GT(number_in(store("laptop"), "SELECT count(*) FROM records WHERE offered = 0"), 0);
  Service laptop(laptop_options(OfferRule::kConfirmed));
  Service site(site_options());
  wait_until_offered();
  EXPECT_EQ(listed(site).size(), listed(laptop).size());
}

// A coordinator signs its records anew, which makes their old signatures invalid. Its upstream, and the upstream of
// its upstream, must then serve the records with the new signatures.
TEST_F(Offers, AreMadeAgainOfWhatIsSignedAnew) {
  CoordinatorOptions last = site_options(), middle = site_options(), first = laptop_options(OfferRule::kConfirmed);
  last.store = store("hq");
  last.listen = address("hq");
  last.signing_key = scratch.path("hq.key");
  middle.upstream = first.upstream;
  middle.upstream.address = address("hq");
  middle.upstream.check_s = first.upstream.check_s = 0.05;
  Service hq(last), site(middle);
  std::optional<Service> laptop(first);
  {
    FakeWorker one(laptop->channel, "one/w"), two(laptop->channel, "two/w");
    wait_for_workers(store("laptop"), 2);
    ASSERT_EQ(laptop->run("r", trials(16)).state, JobState::kSucceeded);
  }
  const std::vector<KernelRecord> made = all_records(*laptop);
  while (listed(hq).size() < made.size()) std::this_thread::yield();
  int64_t before = 0;
  while ((before = head(*laptop, "laptop")->oldest) == 0) std::this_thread::yield();
  laptop.reset();
  // If its store has no floors (least valid generations of records), a coordinator signs all its records anew.
  run_in(store("laptop"), "DELETE FROM floors WHERE scope <> 'last'");
  laptop.emplace(first);
  const auto is_raised = [&](Service& at) {
    const std::optional<StoreHead> known = head(at, "laptop");
    return known && known->oldest > before;
  };
  for (Service* at : {&site, &hq}) {
    while (!is_raised(*at)) std::this_thread::yield();
    for (const KernelRecord& record : made) {
      const absl::StatusOr<KernelRecord> there = at->record(record.key);
      ASSERT_TRUE(there.ok()) << there.status();
      EXPECT_EQ(there->digest, record.digest);
      EXPECT_EQ(why_too_old(*there, *head(*at, "laptop")), "");
      EXPECT_TRUE(check_signature(*there, {{record.signed_by, "laptop"}}).ok());
    }
  }
  expect_sound(store("site"));
  expect_sound(store("hq"));
}

TEST_F(Offers, FollowTheRulesOfBoth) {
  std::vector<KernelRecord> made;
  std::vector<std::string> objects;
  {
    Service laptop(options("laptop"));
    FakeWorker one(laptop.channel, "one/w");
    const Job job = laptop.run("r", trials(16));
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    made = all_records(laptop);
    for (const KernelRecord& record : made) objects.push_back(object(laptop.channel, record.object_sha256).value());
  }
  ASSERT_TRUE(made[0].confirmed_by.empty());
  KernelRecord confirmed = made[0];
  confirmed.confirmed_by = "spiffe:%2F%2Flab%2Ftwo/w";
  const auto sign = [&](KernelRecord record, const std::string& by) {
    record.digest = record_digest(record);
    SigningKey::open(scratch.path(by + ".key")).value()->sign(&record);
    return record;
  };
  CoordinatorOptions trusts_nobody = site_options();
  trusts_nobody.signers.clear();
  std::optional<Service> site(trusts_nobody);
  EXPECT_THAT(std::string(offer("laptop", sign(confirmed, "laptop"), objects[0]).status().message()),
              HasSubstr("takes no offers"));
  site.reset();
  site.emplace(site_options());
  // The token "client" lacks the role that a caller needs to offer records.
  EXPECT_TRUE(absl::IsPermissionDenied(offer("client", sign(confirmed, "laptop"), objects[0]).status()));
  const auto why = [&](const std::string& shown, const KernelRecord& record) {
    const auto answer = offer(shown, record, objects[0]);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->why() : "";
  };
  EXPECT_THAT(why("laptop", made[0]), HasSubstr("nobody has confirmed it"));
  EXPECT_THAT(why("laptop", sign(confirmed, "mallory")), HasSubstr("which is none of --signers"));
  KernelRecord by_one = confirmed;
  by_one.confirmed_by = "one/other";
  EXPECT_THAT(why("laptop", sign(by_one, "laptop")), HasSubstr("nobody has confirmed it")) << "of one principal";
  EXPECT_TRUE(listed(*site).empty());
  // An unconfirmed record that a caller of a team offers is stored for this team only.
  EXPECT_EQ(offer("of_vision", made[0], objects[0])->outcome(), v1::OfferKernelResponse::ACCEPTED);
  EXPECT_EQ(listed(*site).at(0).team(), "vision");
  EXPECT_EQ(offer("laptop", sign(confirmed, "laptop"), objects[0])->outcome(), v1::OfferKernelResponse::ACCEPTED);
  EXPECT_EQ(offer("laptop", sign(confirmed, "laptop"), objects[0])->outcome(), v1::OfferKernelResponse::KNOWN);
  EXPECT_EQ(listed(*site).size(), 2u);
  // If a caller of a team offers a record that is shared already, the record stays shared.
  EXPECT_EQ(offer("of_vision", sign(confirmed, "laptop"), objects[0])->outcome(), v1::OfferKernelResponse::KNOWN);
  EXPECT_EQ(number_in(store("site"), "SELECT count(*) FROM records WHERE namespace = 0 AND blessed = 1"), 1);
  // An offered record that is slower than the shared one is answered with KNOWN. A faster one replaces the shared
  // record.
  KernelRecord other = confirmed;
  other.samples_ns = {confirmed.samples_ns[0] * 2};
  EXPECT_EQ(offer("laptop", sign(other, "laptop"), objects[0])->outcome(), v1::OfferKernelResponse::KNOWN);
  other.samples_ns = {confirmed.samples_ns[0] - 1};
  EXPECT_EQ(offer("laptop", sign(other, "laptop"), objects[0])->outcome(), v1::OfferKernelResponse::ACCEPTED);
  EXPECT_EQ(site->record(confirmed.key)->samples_ns, other.samples_ns);
  // The coordinator "site" revokes the principal whose worker confirmed the record.
  add_row("cert spiffe://lab/two none");
  other.samples_ns = {confirmed.samples_ns[0] - 2};
  std::string said;
  do said = why("laptop", sign(other, "laptop"));
  // The offer is repeated, since the site rereads the file of callers only at intervals.
  while (said.empty() && --other.samples_ns[0] > 0);
  EXPECT_THAT(said, HasSubstr("its producer spiffe://lab/two is revoked here"));
  expect_sound(store("site"));
}

// By the rule kNone a coordinator offers no record, by kConfirmed only confirmed records, and by kAll every record.
TEST_F(Offers, AreMadeByTheRuleOfTheLowerOne) {
  Service site(site_options());
  for (const OfferRule rule : {OfferRule::kNone, OfferRule::kConfirmed}) {
    Service laptop(laptop_options(rule));
    FakeWorker one(laptop.channel, "one/w");
    TuneOptions asked = trials(8);
    asked.retune = true;
    ASSERT_EQ(laptop.run(cat("r", static_cast<int>(rule)), asked).state, JobState::kSucceeded);
  }
  EXPECT_TRUE(listed(site).empty());
  Service laptop(laptop_options(OfferRule::kAll, "of_vision"));
  wait_until_offered();
  EXPECT_EQ(listed(site).size(), listed(laptop).size());
  for (const v1::KernelSummary& kernel : listed(site)) EXPECT_EQ(kernel.team(), "vision");
}

}  // namespace
}  // namespace wl

// A coordinator fetches what it lacks from its upstream, stores it and serves it unchanged.
#include <gmock/gmock.h>

#include <optional>

#include "compiler/base/sha256.h"
#include "tests/server/upstream/chain.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

class Fetching : public Chain {
 protected:
  // Tunes at the coordinator "site" with a worker that stops afterwards. Returns the records that the site then has.
  std::vector<KernelRecord> tune_at_site(const std::string& request = "r") {
    FakeWorker worker(site->channel, "one");
    const Job job = site->run(request, trials(8));
    EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
    return all_records(*site);
  }
  std::optional<Service> site{options("site")};
};

TEST_F(Fetching, ARecordPassesTheChainUnchanged) {
  const std::vector<KernelRecord> made = tune_at_site();
  ASSERT_GT(made.size(), 2u);
  CoordinatorOptions below = options("team", "site"), last = options("laptop", "team");
  below.signers = last.signers = signers({"site"});
  Service team(below), laptop(last);
  for (const KernelRecord& record : made) {
    EXPECT_FALSE(record.signature.empty());
    const std::string there = bytes_of(site->channel, record.key);
    EXPECT_EQ(bytes_of(laptop.channel, record.key), there);
    v1::GetKernelRequest by_digest;
    by_digest.set_digest(record.digest);
    EXPECT_EQ(bytes_of(laptop.channel, by_digest), there);
    EXPECT_EQ(object(laptop.channel, record.object_sha256).value(),
              object(site->channel, record.object_sha256).value());
  }
  // Each coordinator of the chain has stored the records, and serves them while the coordinator "site" is down.
  site.reset();
  for (const KernelRecord& record : made) {
    EXPECT_EQ(*team.record(record.key), record);
    EXPECT_EQ(*laptop.record(record.key), record);
  }
  EXPECT_EQ(number_in(store("laptop"), "SELECT count(*) FROM records WHERE origin = 1 AND offered = 1 AND blessed = 1"),
            static_cast<int64_t>(made.size()));
  expect_sound(store("laptop"));
}

TEST_F(Fetching, ObjectsAndDigestsAreFoundByThemselves) {
  const KernelRecord record = tune_at_site().front();
  Service laptop(options("laptop", "site"));
  EXPECT_EQ(sha256_hex(object(laptop.channel, record.object_sha256).value()), record.object_sha256);
  v1::GetKernelRequest by_digest;
  by_digest.set_digest(record.digest);
  EXPECT_EQ(bytes_of(laptop.channel, by_digest), bytes_of(site->channel, by_digest));
  // A record that was fetched by its digest may be an old one, so it is not served when its key is asked for.
  EXPECT_EQ(number_in(store("laptop"), "SELECT count(*) FROM records WHERE blessed = 1"), 0);
  EXPECT_EQ(*laptop.record(record.key), record);
  EXPECT_EQ(number_in(store("laptop"), "SELECT count(*) FROM records WHERE blessed = 1"), 1);
  EXPECT_TRUE(absl::IsNotFound(object(laptop.channel, sha256_hex("nothing")).status()));
}

TEST_F(Fetching, AJobUsesWhatIsThere) {
  const std::vector<KernelRecord> made = tune_at_site();
  Service laptop(options("laptop", "site"));
  const Job job = laptop.run("r", only_cached());
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_TRUE(job.cached);
  for (const GroupResult& group : job.result->groups)
    EXPECT_EQ(laptop.record(group.key)->digest, site->record(group.key)->digest);
  // A job that may search uses the upstream's records too, and then does not search.
  Service other(options("other", "site"));
  const Job searches = other.run("r", trials(8));
  EXPECT_EQ(searches.state, JobState::kSucceeded) << searches.error;
  EXPECT_TRUE(searches.cached);
}

// A coordinator that never had a worker tunes for the machines that its upstream knows.
TEST_F(Fetching, AJobMayBeForAMachineOfTheUpstream) {
  (void)tune_at_site();
  Service team(options("team", "site")), laptop(options("laptop", "team"));
  TuneOptions asked = only_cached();
  asked.device.reset();
  asked.target = "cpu:avx2";
  Job job;
  // The upstream may answer too late for a job. Its answer is then stored a moment later, so the job is tried again.
  for (int i = 0; i < 30 && job.state != JobState::kSucceeded; ++i) job = laptop.run(cat("r", i), asked);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  ASSERT_TRUE(job.device.has_value());
  EXPECT_EQ(job.device->fingerprint(), fake_device().fingerprint());
}

TEST_F(Fetching, WithoutTheUpstreamItIsSaid) {
  const std::vector<KernelRecord> made = tune_at_site();
  const KernelRecord& record = made.front();
  Service laptop(options("laptop", "site"));
  ASSERT_TRUE(laptop.record(record.key).ok());
  site.reset();
  EXPECT_EQ(*laptop.record(record.key), record);
  const absl::Status missed = laptop.record(sha256_hex("something")).status();
  EXPECT_TRUE(absl::IsNotFound(missed)) << missed;
  EXPECT_THAT(std::string(missed.message()), HasSubstr(cat("the upstream ", address("site"), " cannot be reached")));
  const Job job = laptop.run("r", only_cached());
  EXPECT_EQ(job.state, JobState::kNotCached);
  EXPECT_THAT(std::string(job.error.message()), HasSubstr("kernels are not in the store; the upstream"));
  const v1::ServerInfo info = laptop.server_info();
  EXPECT_EQ(info.upstream(), address("site"));
  EXPECT_THAT(info.upstream_problem(), HasSubstr("cannot be reached"));
  // The coordinator "site" runs again with its records. The coordinator "laptop" must notice this by itself.
  site.emplace(options("site"));
  absl::StatusOr<KernelRecord> other;
  const KernelRecord more = made.back();
  do other = laptop.record(more.key);
  while (absl::IsNotFound(other.status()));
  EXPECT_EQ(*other, more);
}

// A record that a search of this coordinator made is not replaced by the upstream's record.
TEST_F(Fetching, OwnRecordsStay) {
  const std::vector<KernelRecord> made = tune_at_site();
  Service laptop(options("laptop", "site"));
  FakeWorker worker(laptop.channel, "own");
  TuneOptions again = trials(8);
  again.retune = true;
  ASSERT_EQ(laptop.run("r", again).state, JobState::kSucceeded);
  for (const KernelRecord& record : made) {
    EXPECT_EQ(laptop.record(record.key)->measured_by, "own");
    v1::GetKernelRequest by_digest;
    by_digest.set_digest(record.digest);
    EXPECT_EQ(bytes_of(laptop.channel, by_digest), bytes_of(site->channel, by_digest));
    EXPECT_EQ(laptop.record(record.key)->measured_by, "own");
  }
}

// If the upstream no longer serves a record, the coordinator drops its fetched copy; if the upstream has replaced the
// record, the coordinator fetches the new one.
TEST_F(Fetching, WhatIsInvalidatedOrReplacedThereIsFoundOut) {
  const std::vector<KernelRecord> made = tune_at_site();
  CoordinatorOptions last = options("laptop", "site");
  last.upstream.check_s = 0.05;
  Service laptop(last);
  const std::string gone = made.front().key, better = made.back().key;
  ASSERT_NE(gone, better);
  for (const KernelRecord& record : made) ASSERT_TRUE(laptop.record(record.key).ok());
  {
    FakeWorker worker(site->channel, "two");
    TuneOptions again = trials(9);
    again.retune = true;
    again.seed = 5;
    ASSERT_EQ(site->run("again", again).state, JobState::kSucceeded);
  }
  site->invalidate(gone);
  while (laptop.record(gone).ok()) {
  }
  const KernelRecord now = site->record(better).value();
  EXPECT_NE(now.digest, made.back().digest);
  while (laptop.record(better)->digest != now.digest) {
  }
  expect_sound(store("laptop"));
}

// Coordinator A is the upstream of B, and B is the upstream of A.
TEST_F(Fetching, ACircleEnds) {
  Service a(options("a", "b")), b(options("b", "a"));
  absl::Status missed;
  do missed = a.record(sha256_hex("something")).status();
  // until coordinator b has started, it gives no answer
  while (missed.message().find("cannot be reached") != std::string::npos);
  EXPECT_TRUE(absl::IsNotFound(missed));
  EXPECT_THAT(std::string(missed.message()), HasSubstr("this coordinator is its own upstream"));
}

}  // namespace
}  // namespace wl

// A coordinator that compiles promoted sources itself: which records say that the coordinator built their objects, and
// what happens to workers that sent other objects (docs/design/trust.md#object-provenance).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "proto/trust/signing.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

// Returns the object that an honest FakeWorker makes of a source.
Built honest_build(const Source& source, const std::atomic<bool>&) {
  return {.object_sha256 = sha256_hex("object of " + source.text), .compiler = "gcc 12", .why = ""};
}

// Used as the `judge` of a worker that never confirms a promotion of another worker.
void deny(const Batch& batch, Trial* trial) {
  if (confirms(batch.phase)) trial->outcome = Outcome::kWrongResult;
}

class Builds : public ::testing::Test {
 protected:
  void start(Build build) {
    CoordinatorOptions options;
    options.store = store;
    options.signing_key = scratch.path("key");
    options.build = std::move(build);
    service.emplace(options);
  }
  std::vector<KernelRecord> records_of(const Job& job) {
    EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
    if (!job.result) return {};
    for (const GroupResult& group : job.result->groups)
      EXPECT_EQ(group.built, !service->record(group.key)->built_by.empty());
    return service->records_of(*job.result);
  }

  Scratch scratch;
  const std::string store = scratch.path("a.db");
  std::atomic<bool> go_on = false;  // for builds that wait; they may look at it until the service has ended
  std::optional<Service> service;
};

TEST_F(Builds, GiveTheirWordForWhatTheyMake) {
  start(honest_build);
  FakeWorker one(service->channel, "one");
  for (const KernelRecord& record : records_of(service->run("r", trials(24)))) {
    EXPECT_EQ(record.confirmed_by, "");
    EXPECT_TRUE(is_built(record, {}));
    EXPECT_TRUE(is_built(record, {{record.signed_by, "this one"}}));
    EXPECT_FALSE(is_built(record, {{std::string(64, 'a'), "another"}}));
    KernelRecord other = record;
    other.digest = sha256_hex("other");
    EXPECT_FALSE(is_built(other, {})) << "the word is for one record";
    other = record;
    other.built_signature = record.signature;
    EXPECT_FALSE(is_built(other, {})) << "who signs a record has not built its object";
  }
}

// If the coordinator has another compiler than the workers or none, its records do not say that it built their objects.
TEST_F(Builds, ByOtherCompilersSayNothing) {
  start([](const Source&, const std::atomic<bool>&) { return Built{sha256_hex("another"), "gcc 13", ""}; });
  FakeWorker one(service->channel, "one");
  for (const KernelRecord& record : records_of(service->run("r", trials(24)))) EXPECT_FALSE(is_built(record, {}));
}

TEST_F(Builds, ThatFailSayNothing) {
  start([](const Source&, const std::atomic<bool>&) { return Built{"", "", "no compiler"}; });
  FakeWorker one(service->channel, "one");
  for (const KernelRecord& record : records_of(service->run("r", trials(24)))) EXPECT_FALSE(is_built(record, {}));
}

TEST_F(Builds, RefuteWhoSendsAnotherObject) {
  start(honest_build);
  FakeWorker hostile(service->channel, "hostile/w", {.forge = forge_objects}), honest(service->channel, "honest/w");
  wait_for_workers(store, 2);
  for (const KernelRecord& record : records_of(service->run("r", trials(24)))) {
    EXPECT_EQ(record.object_sha256, sha256_hex("object of " + record.plan));
    EXPECT_EQ(record.measured_by, "honest/w");
    EXPECT_TRUE(is_built(record, {}));
  }
}

TEST_F(Builds, LeaveNothingOfWorkersThatAllSendOtherObjects) {
  start(honest_build);
  FakeWorker hostile(service->channel, "hostile/w", {.forge = forge_objects}),
      other(service->channel, "other/w", {.forge = forge_objects});
  wait_for_workers(store, 2);
  const Job job = service->run("r", trials(24));
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_THAT(job.error.message(), HasSubstr("says that it built the object"));
  EXPECT_EQ(number_in(store, "SELECT count(*) FROM records"), 0);
}

// A worker that denies all promotions of the only other worker cannot make the job fail.
TEST_F(Builds, ServeTheDefaultScheduleWhereNobodyAgrees) {
  start(honest_build);
  FakeWorker hostile(service->channel, "hostile/w", {.judge = deny}), honest(service->channel, "honest/w");
  wait_for_workers(store, 2);
  for (const KernelRecord& record : records_of(service->run("r", trials(24)))) {
    EXPECT_TRUE(is_built(record, {}));
    EXPECT_TRUE(is_confirmed(record) || record.plan == record.default_plan) << record.plan;
  }
}

// Records made by a coordinator that does not compile sources itself, such as an older version, are compiled later when
// a coordinator starts that does.
TEST_F(Builds, AreMadeUpForAfterAStart) {
  start({});
  std::vector<std::string> keys;
  {
    FakeWorker one(service->channel, "one");
    const Job job = service->run("r", trials(24));
    for (const KernelRecord& record : records_of(job)) {
      EXPECT_FALSE(is_built(record, {}));
      keys.push_back(record.key);
    }
  }
  ASSERT_FALSE(keys.empty());
  service.reset();
  start(honest_build);
  for (const std::string& key : keys)
    while (!is_built(*service->record(key), {})) std::this_thread::yield();
  for (const std::string& key : keys) EXPECT_EQ(record_digest(*service->record(key)), service->record(key)->digest);
  FakeWorker one(service->channel, "one");
  for (const KernelRecord& record : records_of(service->run("s", trials(24)))) EXPECT_TRUE(is_built(record, {}));
}

TEST_F(Builds, OfOtherObjectsAreNotMadeUpFor) {
  start({});
  {
    FakeWorker hostile(service->channel, "hostile/w", {.forge = forge_objects});
    EXPECT_EQ(service->run("r", trials(24)).state, JobState::kSucceeded);
  }
  service.reset();
  std::atomic<int> built = 0;
  start([&](const Source& source, const std::atomic<bool>& cancel) {
    ++built;
    return honest_build(source, cancel);
  });
  const int64_t records = number_in(store, "SELECT count(*) FROM records WHERE blessed = 1");
  while (built < records) std::this_thread::yield();
  service.reset();
  start({});
  for (const auto& row : rows_of(store, "SELECT lower(hex(key)) FROM records WHERE blessed = 1")) {
    EXPECT_FALSE(is_built(*service->record(row[0]), {}));
  }
}

// A cancelled job ends without waiting for the coordinator's compiler.
TEST_F(Builds, AreNotAwaitedByACancelledJob) {
  start([this](const Source& source, const std::atomic<bool>& cancel) {
    while (!go_on) std::this_thread::yield();
    return honest_build(source, cancel);
  });
  FakeWorker one(service->channel, "one");
  const auto job = service->create("r", trials(24));
  ASSERT_TRUE(job.ok()) << job.status();
  while (number_in(store, "SELECT count(*) FROM trials WHERE phase > 0") == 0) std::this_thread::yield();
  EXPECT_TRUE(service->cancel(job->name));
  EXPECT_EQ(service->watch(job->name).back().state, JobState::kCancelled);
  go_on = true;
}

}  // namespace
}  // namespace wl

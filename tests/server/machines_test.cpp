// Machines: who runs on one confirms nothing of the others there and takes turns with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "compiler/base/sha256.h"
#include "tests/server/outside.h"
#include "tests/server/scratch.h"
#include "tests/server/service.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

const std::string kOne = sha256_hex("one machine"), kOther = sha256_hex("another machine");

class Machines : public ::testing::Test {
 protected:
  Scratch scratch;
  const std::string store = scratch.path("a.db");
  Service service{store, 600};
};

TEST_F(Machines, DoNotConfirmThemselves) {
  FakeWorker one(service.channel, "one", {}, fake_device(), kOne), two(service.channel, "two", {}, fake_device(), kOne);
  wait_for_workers(store, 2);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result)) {
    EXPECT_NE(record.measured_by, "");
    EXPECT_EQ(record.confirmed_by, "");
  }
}

TEST_F(Machines, ConfirmEachOther) {
  FakeWorker one(service.channel, "one", {}, fake_device(), kOne), two(service.channel, "two", {}, fake_device(), kOne),
      three(service.channel, "three", {}, fake_device(), kOther);
  wait_for_workers(store, 3);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result))
    EXPECT_TRUE((record.measured_by == "three") != (record.confirmed_by == "three"))
        << record.measured_by << " " << record.confirmed_by;
}

// A worker that does not say where it runs may run anywhere.
TEST_F(Machines, ThatAreNotKnownConfirmNobody) {
  grpc::ClientContext context;
  v1::RegisterWorkerRequest request;
  request.set_name("older");
  *request.add_devices() = to_proto(fake_device());
  v1::RegisterWorkerResponse answer;
  ASSERT_TRUE(service.workers->RegisterWorker(&context, request, &answer).ok());
  FakeWorker one(service.channel, "one");
  wait_for_workers(store, 2);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result)) EXPECT_EQ(record.confirmed_by, "");
}

// Only another machine's worker confirms what was promoted before a restart, although who measured it is gone.
TEST_F(Machines, AreKnownAfterARestart) {
  const std::string file = scratch.path("restarted.db");
  const std::string graph =
      "graph {\n  %0 = input \"x\" : f32[64,32] normal(0,1)\n  %1 = exp %0 : f32[64,32]\n"
      "  output \"y\" %1\n}\n";
  {
    Service before(file, 600);
    before.register_worker("gone");
    FakeWorker one(before.channel, "one", {}, fake_device(), kOne);
    ASSERT_TRUE(before.create("r", trials(8), graph).ok());
    const std::string asked = cat("SELECT count(*) FROM batches WHERE state = 'ready' AND phase > ", kConfirmation);
    while (number_in(file, asked) == 0) std::this_thread::yield();
  }
  Service after(file, 600);
  FakeWorker two(after.channel, "two", {}, fake_device(), kOne);
  wait_for_workers(file, 3);
  FakeWorker three(after.channel, "three", {}, fake_device(), kOther);
  const Job job = after.run("r", trials(8), graph);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  const std::vector<KernelRecord> records = after.records_of(*job.result);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].measured_by, "one");
  EXPECT_EQ(records[0].confirmed_by, "three");
}

// How many measure at once when there are two workers, each of which waits for so long until another one has begun.
int most_at_once(Service& service, const std::string& store, const std::string& first, const std::string& second,
                 std::chrono::milliseconds patience) {
  std::atomic<int> now = 0, most = 0;
  Hooks hooks;
  hooks.before = [&](const Batch&) {
    const int count = ++now;
    for (int seen = most; count > seen && !most.compare_exchange_weak(seen, count);) {
    }
    const auto until = std::chrono::steady_clock::now() + patience;
    while (now < 2 && most < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    --now;
  };
  FakeWorker one(service.channel, "one", hooks, fake_device(), first),
      two(service.channel, "two", hooks, fake_device(), second);
  wait_for_workers(store, 2);
  const Job job = service.run("r", trials(64));
  EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
  EXPECT_FALSE(one.measured().empty());
  EXPECT_FALSE(two.measured().empty()) << "each has its turn";
  return most;
}

TEST_F(Machines, MeasureForOneWorkerAtATime) {
  EXPECT_EQ(most_at_once(service, store, kOne, kOne, std::chrono::milliseconds(100)), 1);
}

TEST_F(Machines, MeasureBesideEachOther) {
  EXPECT_EQ(most_at_once(service, store, kOne, kOther, std::chrono::minutes(1)), 2);
}

TEST_F(Machines, AreNamedByDigests) {
  for (const std::string& name : {std::string("box"), std::string(65, 'a'), std::string("row one"), kOne + "\n"}) {
    grpc::ClientContext context;
    v1::RegisterWorkerRequest request;
    request.set_name("w");
    request.set_machine(name);
    *request.add_devices() = to_proto(fake_device());
    v1::RegisterWorkerResponse answer;
    const grpc::Status status = service.workers->RegisterWorker(&context, request, &answer);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(status.error_message(), HasSubstr("machine"));
  }
}

}  // namespace
}  // namespace wl

// Machines: workers of one machine do not confirm each other and measure in turn, and a worker whose connection ends
// soon counts as lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_replace.h"
#include "compiler/base/sha256.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

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
  FakeWorker one(service.channel, "one/w", {}, fake_device(), kOne),
      two(service.channel, "two/w", {}, fake_device(), kOne);
  wait_for_workers(store, 2);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result)) {
    EXPECT_NE(record.measured_by, "");
    EXPECT_EQ(record.confirmed_by, "");
  }
}

TEST_F(Machines, ConfirmEachOther) {
  FakeWorker one(service.channel, "one/w", {}, fake_device(), kOne),
      two(service.channel, "two/w", {}, fake_device(), kOne),
      three(service.channel, "three/w", {}, fake_device(), kOther);
  wait_for_workers(store, 3);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result))
    EXPECT_TRUE((record.measured_by == "three/w") != (record.confirmed_by == "three/w"))
        << record.measured_by << " " << record.confirmed_by;
}

// A worker that does not name its machine may run on any machine, so it can confirm no other worker.
TEST_F(Machines, ThatAreNotKnownConfirmNobody) {
  service.enter("older/w");
  FakeWorker one(service.channel, "one/w");
  wait_for_workers(store, 2);
  const Job job = service.run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service.records_of(*job.result)) EXPECT_EQ(record.confirmed_by, "");
}

// After a restart, only a worker of another machine confirms a promotion: the store knows the machine of the promoting
// worker, which is gone.
TEST_F(Machines, AreKnownAfterARestart) {
  const std::string file = scratch.path("restarted.db");
  const std::string graph = one_op(64);
  {
    Service before(file, 600);
    before.register_worker("gone/w");
    FakeWorker one(before.channel, "one/w", {}, fake_device(), kOne);
    ASSERT_TRUE(before.create("r", trials(8), graph).ok());
    const std::string asked = cat("SELECT count(*) FROM batches WHERE state = 'ready' AND phase > ", kConfirmation);
    while (number_in(file, asked) == 0) std::this_thread::yield();
  }
  Service after(file, 600);
  FakeWorker two(after.channel, "two/w", {}, fake_device(), kOne);
  wait_for_workers(file, 3);
  FakeWorker three(after.channel, "three/w", {}, fake_device(), kOther);
  const Job job = after.run("r", trials(8), graph);
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  const std::vector<KernelRecord> records = after.records_of(*job.result);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].measured_by, "one/w");
  EXPECT_EQ(records[0].confirmed_by, "three/w");
}

// Runs two workers on the machines `first` and `second`, and returns how many of them measure at the same time at most.
// `patience`: how long each worker waits for the other one to begin.
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

// A call of Attend by a worker's process, which stays open until cut() or until the coordinator ends it.
class Attending {
 public:
  Attending(Service& service, const std::string& name, uint64_t epoch = 1) {
    v1::AttendRequest request;
    request.set_worker(name);
    request.set_epoch(epoch);
    stream_ = service.workers->Attend(&context_, request);
  }
  ~Attending() { end(); }
  void cut() { context_.TryCancel(); }
  grpc::Status end() {
    if (ended_) return {};
    cut();
    return wait();
  }
  // Waits until the call ends, and returns its status.
  grpc::Status wait() {
    ended_ = true;
    v1::AttendResponse nothing;
    while (stream_->Read(&nothing)) {
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::AttendResponse>> stream_;
  bool ended_ = false;
};

// Leases last ten minutes here, so it is the end of the connection that gives the batch to the other worker. Both
// workers are on one machine, where the lost worker's turn to measure ends as well.
TEST_F(Machines, LoseWorkersWhoseConnectionEnds) {
  service.register_worker("lost");
  Attending attending(service, "lost");
  const auto job = service.create("r", trials(16));
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_NE(service.acquire("lost").lease_id(), "");
  EXPECT_TRUE(service.is_alive("lost"));
  {
    FakeWorker idle(service.channel, "idle", {}, fake_device(), sha256_hex("machine of lost"));
    wait_for_workers(store, 2);
    attending.cut();
    EXPECT_EQ(service.watch(job->name).back().state, JobState::kSucceeded);
    EXPECT_FALSE(service.is_alive("lost"));
    EXPECT_TRUE(service.is_alive("idle"));
  }
  // The lost worker was only disconnected. It gets leases again without registering.
  const auto next = service.create("s", trials(16), absl::StrReplaceAll(kGraph, {{"exp", "tanh"}}));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE(service.acquire("lost").lease_id(), "");
  EXPECT_TRUE(service.is_alive("lost"));
}

TEST_F(Machines, KeepWorkersThatComeBackAtOnce) {
  for (const char* name : {"back", "gone"}) service.register_worker(name);
  const auto job = service.create("r", trials(16));
  ASSERT_TRUE(job.ok()) << job.status();
  Attending broken(service, "back"), other(service, "gone"), again(service, "back");
  const v1::Lease lease = service.acquire("back");
  ASSERT_NE(lease.lease_id(), "");
  broken.end();
  other.end();
  while (service.is_alive("gone")) std::this_thread::yield();
  EXPECT_TRUE(service.is_alive("back"));
  grpc::ClientContext context;
  v1::RenewLeasesRequest renewal;
  renewal.set_worker("back");
  renewal.set_epoch(1);
  auto* item = renewal.add_items();
  item->set_lease_id(lease.lease_id());
  item->set_attempt(lease.attempt());
  v1::RenewLeasesResponse answer;
  ASSERT_TRUE(service.workers->RenewLeases(&context, renewal, &answer).ok());
  EXPECT_EQ(answer.outcomes(0), v1::RenewLeasesResponse::OK);
}

TEST_F(Machines, AreAttendedUnderTheirOwnEpoch) {
  service.register_worker("w");
  EXPECT_EQ(Attending(service, "w", 7).wait().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(Machines, AreAttendedByFewCalls) {
  service.register_worker("w");
  std::list<Attending> calls;
  for (int i = 0; i < 9; ++i) calls.emplace_back(service, "w");
  // The calls begin at the same time, so any of them may be the one that is refused (eight are allowed).
  std::atomic<int> refused = 0;
  std::vector<std::thread> waits;
  for (Attending& call : calls)
    waits.emplace_back([&] {
      if (call.wait().error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return;
      ++refused;
      for (Attending& other : calls) other.cut();
    });
  for (std::thread& wait : waits) wait.join();
  EXPECT_EQ(refused, 1);
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

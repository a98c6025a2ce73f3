// The principal of a worker is the certificate or token with which it calls, whatever name it registers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "proto/transfer.h"
#include "tests/server/outside.h"
#include "tests/server/trust/with_tokens.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

class Principals : public WithTokens {
 protected:
  Principals() {
    for (const char* name : {"lab", "guest/x"}) add_token(name, kWorker);
    start();
  }
};

// Workers of two names with one token have one principal, which cannot confirm itself.
TEST_F(Principals, DoNotConfirmThemselves) {
  FakeWorker one(by_token("lab"), "one"), two(by_token("lab"), "two");
  wait_for_workers(store, 2);
  const Job job = service->run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service->records_of(*job.result)) {
    EXPECT_THAT(record.measured_by, ::testing::AnyOf("lab/one", "lab/two"));
    EXPECT_EQ(record.confirmed_by, "");
  }
  EXPECT_EQ(rows_of(store, "SELECT name FROM workers ORDER BY 1"), (Rows{{"lab/one"}, {"lab/two"}}));
}

TEST_F(Principals, OfTwoTokensConfirmEachOther) {
  FakeWorker one(by_token("lab"), "one"), two(by_token("guest/x"), "one");
  wait_for_workers(store, 2);
  const Job job = service->run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service->records_of(*job.result)) {
    EXPECT_EQ(std::set<std::string>({record.measured_by, record.confirmed_by}),
              (std::set<std::string>{"lab/one", "guest%2Fx/one"}));
  }
}

// A caller gets no leases in the name of a worker that belongs to another caller.
TEST_F(Principals, SpeakForTheirOwnWorkers) {
  FakeWorker one(by_token("lab"), "one");
  wait_for_workers(store, 1);
  const auto guest = v1::WorkerService::NewStub(by_token("guest/x"));
  const auto acquire = [&](const std::string& name) {
    grpc::ClientContext context;
    v1::AcquireLeasesRequest request;
    request.set_worker(name);
    request.set_epoch(static_cast<uint64_t>(number_in(store, "SELECT epoch FROM workers")));
    request.set_max(1);
    v1::AcquireLeasesResponse answer;
    return guest->AcquireLeases(&context, request, &answer);
  };
  EXPECT_EQ(acquire("lab/one").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(acquire("lab/one").error_message(), HasSubstr("a worker of another caller"));
  EXPECT_EQ(acquire("guest%2Fx/one").error_code(), grpc::StatusCode::FAILED_PRECONDITION) << "never registered";
}

// Makes a worker's calls one at a time, as a test asks for them.
struct Hand : Caller {
  explicit Hand(const std::shared_ptr<grpc::Channel>& by) : Caller(by), blobs(v1::BlobStore::NewStub(by)) {}

  v1::RegisterWorkerResponse enter(const std::string& name) const {
    return Caller::enter(name, fake_device(), sha256_hex("machine of " + name));
  }
  // Returns a request about a lease in the name of a worker. The functions below send such a request and return its
  // outcome, or "refused CODE".
  template <typename Request>
  Request about(const std::string& worker, const v1::Lease& lease) const {
    Request request;
    request.set_worker(worker);
    request.set_epoch(1);
    auto* item = request.add_items();
    item->set_lease_id(lease.lease_id());
    item->set_attempt(lease.attempt());
    return request;
  }
  std::string renew(const std::string& worker, const v1::Lease& lease) const {
    grpc::ClientContext context;
    v1::RenewLeasesResponse answer;
    const grpc::Status status = workers->RenewLeases(&context, about<v1::RenewLeasesRequest>(worker, lease), &answer);
    if (!status.ok()) return cat("refused ", status.error_code());
    return v1::RenewLeasesResponse::Outcome_Name(answer.outcomes(0));
  }
  std::string report(const std::string& worker, const v1::Lease& lease) const {
    grpc::ClientContext context;
    v1::ReportResultsResponse answer;
    const grpc::Status status = workers->ReportResults(&context, empty_report(worker, lease, 1), &answer);
    if (!status.ok()) return cat("refused ", status.error_code());
    return v1::ReportResultsResponse::Outcome_Name(answer.outcomes(0));
  }
  std::string release(const std::string& worker, const v1::Lease& lease) const {
    grpc::ClientContext context;
    v1::ReleaseLeasesResponse answer;
    const grpc::Status status =
        workers->ReleaseLeases(&context, about<v1::ReleaseLeasesRequest>(worker, lease), &answer);
    return status.ok() ? "ok" : cat("refused ", status.error_code());
  }
  grpc::StatusCode upload(const std::string& bytes) const {
    grpc::ClientContext context;
    return wl::upload(*blobs, &context, sha256_hex(bytes), bytes).error_code();
  }

  std::unique_ptr<v1::BlobStore::Stub> blobs;
};

// Callers without a token have a principal whose name no token can have. They cannot be told apart, so they confirm
// nothing, and they cannot register under the names of other callers' workers.
class Nameless : public Principals {
 protected:
  Nameless() {
    service.reset();
    CoordinatorOptions options;
    options.listen = "127.0.0.1:0";
    start(options);
    stranger = dial(service->coordinator.addresses().back(), {}).value();
  }
  std::shared_ptr<grpc::Channel> stranger;
};

TEST_F(Nameless, TakeNobodysName) {
  FakeWorker honest(by_token("lab"), "gpu7");
  wait_for_workers(store, 1);
  EXPECT_EQ(Hand(stranger).enter("lab/gpu7").name(), "local/lab/gpu7");
  EXPECT_EQ(Hand(stranger).enter("local/gpu7").name(), "local/gpu7");
  EXPECT_EQ(Hand(by_token("lab")).enter("lab").name(), "lab/lab");
  const Job job = service->run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service->records_of(*job.result)) EXPECT_EQ(record.measured_by, "lab/gpu7");
  EXPECT_TRUE(honest.stop().ok()) << "nobody has told it to go";
}

TEST_F(Nameless, ConfirmNothing) {
  FakeWorker one(stranger, "one"), two(stranger, "two"), three(dial("unix:" + scratch.path("s"), {}).value(), "three");
  wait_for_workers(store, 3);
  EXPECT_EQ(rows_of(store, "SELECT name FROM workers ORDER BY 1"),
            (Rows{{"local/one"}, {"local/two"}, {cat("uid:", getuid(), "/three")}}));
  const Job job = service->run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service->records_of(*job.result)) {
    EXPECT_FALSE(is_confirmed(record));
    EXPECT_EQ(record.confirmed_by, "");
  }
}

TEST(Callers, HaveNoNamesOfOthers) {
  Scratch scratch;
  for (const char* name : {"local", "uid:0"})
    EXPECT_THAT(std::string(make_token(scratch.path("callers"), name, kWorker, 3600).status().message()),
                HasSubstr("stand for callers without a token"));
}

// Only the worker that has a lease can use it. Another caller cannot, even if it knows the lease's id and the worker's
// name.
TEST_F(Principals, HoldTheirOwnLeases) {
  const Hand lab(by_token("lab")), guest(by_token("guest/x"));
  const std::string mine = lab.enter("w").name(), other = guest.enter("w").name();
  ASSERT_TRUE(service->create("r", trials(16)).ok());
  EXPECT_EQ(lab.upload("early"), grpc::StatusCode::FAILED_PRECONDITION) << "it measures nothing yet";
  const v1::Lease lease = lab.acquire(mine, 1, 30);
  ASSERT_NE(lease.lease_id(), "");
  const std::string refused = cat("refused ", grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(guest.renew(mine, lease), refused);
  EXPECT_EQ(guest.report(mine, lease), refused);
  EXPECT_EQ(guest.release(mine, lease), refused);
  EXPECT_EQ(guest.renew("", lease), cat("refused ", grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(guest.renew(other, lease), "LOST");
  EXPECT_EQ(guest.report(other, lease), "STALE");
  EXPECT_EQ(guest.release(other, lease), "ok") << "of nothing";
  EXPECT_EQ(guest.upload("object"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(lab.renew(mine, lease), "OK");
  EXPECT_EQ(lab.upload("object"), grpc::StatusCode::OK);
  EXPECT_EQ(lab.report(mine, lease), "ACCEPTED");
  EXPECT_EQ(number_in(store, "SELECT count(*) FROM trials WHERE worker LIKE 'guest%'"), 0);
}

// A worker that tries to renew a lease which it does not hold does not count as alive because of these calls.
TEST_F(Principals, AreNotKeptAliveByEmptyCalls) {
  CoordinatorOptions options;
  options.lease_s = 0.3;
  service.reset();
  start(options);
  const Hand lab(by_token("lab"));
  const std::string mine = lab.enter("w").name();
  v1::Lease none;
  none.set_lease_id(std::string(32, '0'));
  none.set_attempt(1);
  while (service->is_alive(mine)) EXPECT_EQ(lab.renew(mine, none), "LOST");
}

}  // namespace
}  // namespace wl

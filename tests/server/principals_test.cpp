// Who answers for a worker: the certificate or token that it calls with, whatever names it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/dial.h"
#include "server/services/callers.h"
#include "tests/server/outside.h"
#include "tests/server/scratch.h"
#include "tests/server/service.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

class Principals : public ::testing::Test {
 protected:
  Principals() {
    for (const char* name : {"lab", "guest/x"})
      tokens.push_back(make_token(scratch.path("callers"), name, kWorker, 3600).value());
    CoordinatorOptions options;
    options.store = store;
    options.listen = "unix:" + scratch.path("s");
    options.callers = scratch.path("callers");
    service.emplace(options);
  }
  std::shared_ptr<grpc::Channel> by_token(size_t token) const {
    DialOptions how;
    how.token = tokens[token];
    return dial("unix:" + scratch.path("s"), how).value();
  }

  Scratch scratch;
  const std::string store = scratch.path("a.db");
  std::vector<std::string> tokens;
  std::optional<Service> service;
};

// One token under two names is one principal: it cannot confirm itself.
TEST_F(Principals, DoNotConfirmThemselves) {
  FakeWorker one(by_token(0), "one"), two(by_token(0), "two");
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
  FakeWorker one(by_token(0), "one"), two(by_token(1), "one");
  wait_for_workers(store, 2);
  const Job job = service->run("r", trials(24));
  ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
  for (const KernelRecord& record : service->records_of(*job.result)) {
    EXPECT_EQ(std::set<std::string>({record.measured_by, record.confirmed_by}),
              (std::set<std::string>{"lab/one", "guest%2Fx/one"}));
  }
}

// Nor does anybody get work in the name of another's worker.
TEST_F(Principals, SpeakForTheirOwnWorkers) {
  FakeWorker one(by_token(0), "one");
  wait_for_workers(store, 1);
  const auto guest = v1::WorkerService::NewStub(by_token(1));
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

}  // namespace
}  // namespace wl

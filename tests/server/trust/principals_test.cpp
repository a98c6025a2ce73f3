// Who answers for a worker: the certificate or token that it calls with, whatever names it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// One token under two names is one principal: it cannot confirm itself.
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

// Nor does anybody get work in the name of another's worker.
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

}  // namespace
}  // namespace wl

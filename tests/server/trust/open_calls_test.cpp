// Calls that stay open end when their caller loses the right to make them.
#include "server/services/open_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/server/trust/with_tokens.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

class Open : public WithTokens {
 protected:
  Open() {
    for (const char* name : {"alice", "gpu7"}) add_token(name, kClient | kWorker | kCache);
    start();
    alice.call_by(by_token("alice"));
    gpu7.call_by(by_token("gpu7"));
  }
  // Creates a job that stays open, since it has no worker, and returns its name.
  std::string waiting_job() { return alice.create("r", trials(16))->name; }

  Caller alice, gpu7;
};

TEST_F(Open, WatchesEndWithTheirToken) {
  const std::string job = waiting_job();
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_name(job);
  auto reader = alice.tuning->WatchJob(&context, request);
  v1::Job message;
  ASSERT_TRUE(reader->Read(&message));
  take_away("alice");
  while (reader->Read(&message)) {
  }
  const grpc::Status end = reader->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAUTHENTICATED) << end.error_message();
  EXPECT_THAT(end.error_message(), HasSubstr("no longer, known here"));
}

TEST_F(Open, WatchesOfOthersGoOn) {
  const std::string job = waiting_job();
  std::thread watching([&] { EXPECT_EQ(alice.watch(job).back().state, JobState::kSucceeded); });
  take_away("gpu7");
  grpc::Status refused;
  while (refused.error_code() != grpc::StatusCode::UNAUTHENTICATED) {
    grpc::ClientContext context;
    v1::ListJobsResponse page;
    refused = gpu7.tuning->ListJobs(&context, {}, &page);
  }
  FakeWorker worker(by_token("alice"), "one");
  watching.join();
}

TEST_F(Open, LongPollsEndWithTheirToken) {
  const v1::RegisterWorkerResponse registered = gpu7.enter("one");
  take_away("gpu7");
  v1::AcquireLeasesRequest wanted;
  wanted.set_worker(registered.name());
  wanted.set_epoch(registered.epoch());
  wanted.set_max(1);
  wanted.set_wait_s(50);
  v1::AcquireLeasesResponse answer;
  grpc::ClientContext polling;
  // If the coordinator has read the callers file again before the call begins, it refuses the call at once. Otherwise
  // it ends the call while the call waits.
  const grpc::Status end = gpu7.workers->AcquireLeases(&polling, wanted, &answer);
  EXPECT_THAT(end.error_code(), ::testing::AnyOf(grpc::StatusCode::UNAUTHENTICATED, grpc::StatusCode::CANCELLED));
}

TEST_F(Open, UploadsEndWithTheirToken) {
  const auto blobs = v1::BlobStore::NewStub(by_token("gpu7"));
  grpc::ClientContext context;
  v1::UploadResponse answer;
  auto writer = blobs->Upload(&context, &answer);
  v1::UploadRequest chunk;
  chunk.set_digest(std::string(64, 'a'));
  chunk.set_data("x");
  ASSERT_TRUE(writer->Write(chunk));
  take_away("gpu7");
  while (writer->Write(chunk)) std::this_thread::yield();
  EXPECT_THAT(writer->Finish().error_code(),
              ::testing::AnyOf(grpc::StatusCode::UNAUTHENTICATED, grpc::StatusCode::CANCELLED));
}

TEST(OpenCalls, EndOnceAndMayBeDestroyedByTheirEnd) {
  OpenCalls calls;
  std::atomic<int> ended = 0;
  std::unique_ptr<OpenCalls::Held> one, two;
  std::atomic<bool> allowed = true;
  const auto check = [&] { return allowed ? absl::OkStatus() : absl::PermissionDeniedError("no"); };
  one = calls.hold(check, [&](const absl::Status&) {
    one.reset();
    ++ended;
  });
  two = calls.hold(check, [&](const absl::Status& status) {
    EXPECT_EQ(status.message(), "no");
    ++ended;
  });
  allowed = false;
  while (ended < 2) std::this_thread::yield();
  two.reset();
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace wl

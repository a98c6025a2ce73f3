// What a coordinator refuses so that it goes on serving: connections, and bytes that are on their way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "compiler/base/sha256.h"
#include "compiler/base/status.h"
#include "proto/rpc.h"
#include "server/coordinator.h"
#include "tests/server/scratch.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/blob.grpc.pb.h"

namespace wl {
namespace {

namespace v1 = ::warploom::v1;

using ::testing::HasSubstr;

// A blob of equal chunks that is being uploaded.
class Upload {
 public:
  Upload(v1::BlobStore::Stub& blobs, int chunks) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::UploadRequest chunk;
    chunk.set_data(std::string(kBlobChunkBytes, 'x'));
    std::string bytes;
    for (int i = 0; i < chunks; ++i) bytes += chunk.data();
    chunk.set_digest(sha256_hex(bytes));
    writer_ = blobs.Upload(&context_, &answer_);
    for (int i = 0; i < chunks && writer_->Write(chunk); ++i) {
    }
  }
  grpc::Status finish() {
    writer_->WritesDone();
    return writer_->Finish();
  }
  grpc::Status cancel() {
    context_.TryCancel();
    return writer_->Finish();
  }

 private:
  grpc::ClientContext context_;
  v1::UploadResponse answer_;
  std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer_;
};

TEST(Uploads, HoldNoMoreThanTheirShareOfMemory) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "unix:" + scratch.path("s");
  constexpr int kChunks = 16;
  options.max_transfer_bytes = 4 * kChunks * kBlobChunkBytes;
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  const auto blobs = v1::BlobStore::NewStub(dial(options.listen));
  for (int round = 0; round < 3; ++round) {
    const grpc::Status refused = Upload(*blobs, 5 * kChunks).finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr("try again"));
    EXPECT_EQ(Upload(*blobs, 2 * kChunks).cancel().error_code(), grpc::StatusCode::CANCELLED);
    // What they held is given back when the coordinator has heard of their end.
    while (!Upload(*blobs, 3 * kChunks).finish().ok()) {
    }
  }
}

TEST(Uploads, ComeInChunksOfTheAgreedSize) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  const auto blobs = v1::BlobStore::NewStub(coordinator.in_process_channel());
  grpc::ClientContext context;
  v1::UploadResponse answer;
  const auto writer = blobs->Upload(&context, &answer);
  v1::UploadRequest chunk;
  chunk.set_data(std::string(kBlobChunkBytes + 1, 'x'));
  writer->Write(chunk);
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("chunk"));
}

TEST(Connections, BeyondTheirNumberAreClosedAndTheOthersServed) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "127.0.0.1:0";
  options.max_connections = 3;
  Coordinator coordinator;
  ASSERT_TRUE(coordinator.start(options).ok());
  const std::string address = cat("127.0.0.1:", coordinator.port());
  const auto ask = [&](const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::ServerInfo info;
    return v1::Admin::NewStub(channel)->GetServerInfo(&context, {}, &info);
  };
  grpc::ChannelArguments own = channel_arguments();
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  const auto connect = [&] { return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own); };
  std::list<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 3; ++i) {
    channels.push_back(connect());
    EXPECT_TRUE(ask(channels.back()).ok());
  }
  EXPECT_EQ(ask(connect()).error_code(), grpc::StatusCode::UNAVAILABLE);
  for (const auto& channel : channels) EXPECT_TRUE(ask(channel).ok());
  channels.pop_front();
  // The place becomes free when the coordinator has seen the end of the connection.
  grpc::Status status;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    status = ask(connect());
  } while (!status.ok() && std::chrono::steady_clock::now() < give_up);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(Connections, AreNoMoreThanTheDescriptorsAllow) {
  Scratch scratch;
  CoordinatorOptions options;
  options.store = scratch.path("a.db");
  options.listen = "127.0.0.1:0";
  options.max_connections = 1 << 30;
  Coordinator coordinator;
  const absl::Status status = coordinator.start(options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace wl

// Calls of RPCs whose requests and answers are bytes instead of messages.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace wl {

// Calls an RPC, unary or streaming, with the bytes `asked` as its request, and returns the call's status. The bytes of
// the answer are stored in `answer`.
inline grpc::Status raw_call(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                             const std::string& asked, grpc::ByteBuffer* answer) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  const grpc::Slice bytes(asked);
  const auto pending = stub.PrepareUnaryCall(&context, path, grpc::ByteBuffer(&bytes, 1), &queue);
  grpc::Status status;
  pending->StartCall();
  pending->Finish(answer, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return status;
}

}  // namespace wl

// What clients and servers have to agree on: error codes, limits of messages, keep-alive and the form of addresses,
// which is "unix:PATH" or "HOST:PORT".
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace wl {

inline constexpr int kMaxMessageBytes = 64 << 20;
inline constexpr int kMaxRequestBytes = 20 << 20;  // the most that a coordinator takes; a graph is the largest part
inline constexpr int kBlobChunkBytes = 256 << 10;  // data in one message of an upload or download
inline constexpr int kApiVersion = 1;

// absl and gRPC use the same numbers for codes.
grpc::Status to_grpc(const absl::Status& status);
absl::Status from_grpc(const grpc::Status& status);

// Client-side settings: message limits, keep-alive every 30 s, quick reconnects (at most 2 s apart).
grpc::ChannelArguments channel_arguments();
// Returns a plaintext channel to "unix:PATH" or "HOST:PORT" that connects lazily and reconnects by itself.
std::shared_ptr<grpc::Channel> dial(const std::string& address);

}  // namespace wl

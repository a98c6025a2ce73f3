// What clients and servers have to agree on: error codes, limits of messages, keep-alive, and the form of addresses
// ("unix:PATH" or "HOST:PORT").
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace wl {

inline constexpr int kMaxMessageBytes = 64 << 20;
// Maximum size of a request in bytes; the largest requests contain a graph.
inline constexpr int kMaxRequestBytes = 20 << 20;
inline constexpr int kBlobChunkBytes = 256 << 10;  // bytes of data in one message of an upload or download
inline constexpr int kApiVersion = 1;

// Convert between statuses, whose codes have the same numbers in absl and gRPC.
grpc::Status to_grpc(const absl::Status& status);
absl::Status from_grpc(const grpc::Status& status);

// Returns the channel settings of a client: limits of message sizes, keep-alive every 30 s, quick reconnects (at most 2
// s apart).
grpc::ChannelArguments channel_arguments();
// Returns a plaintext channel to "unix:PATH" or "HOST:PORT" that connects lazily and reconnects by itself.
std::shared_ptr<grpc::Channel> dial(const std::string& address);

}  // namespace wl

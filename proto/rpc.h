// What every program that calls or serves must agree on: error codes, message limits, keep-alive and how an address is
// written. Addresses are "unix:PATH" or "HOST:PORT".
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace wl {

inline constexpr int kMaxMessageBytes = 64 << 20;
inline constexpr int kBlobChunkBytes = 256 << 10;
inline constexpr int kApiVersion = 1;

// Codes are the same numbers in both worlds.
grpc::Status to_grpc(const absl::Status& status);
absl::Status from_grpc(const grpc::Status& status);

// Client side settings: message limits, keep-alive every 30 s, quick reconnects (at most 2 s apart).
grpc::ChannelArguments channel_arguments();
// A channel that connects lazily and again by itself. "unix:PATH" or "HOST:PORT"; plaintext.
std::shared_ptr<grpc::Channel> dial(const std::string& address);

}  // namespace wl

// How a call came in, and what it shows of its caller: the connection's door and user, a token, a certificate.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/tls.h"

namespace wl {

// How connections come in.
enum class Door {
  kUnix,      // by a unix socket: the kernel says which user connected
  kLoopback,  // by TCP from this machine, in plain text: any of its users
  kTls,       // by TCP from anywhere
};

// What the connection says of its callers.
struct Connection {
  static constexpr int64_t kUnknown = -1;

  Door door = Door::kUnix;
  std::atomic<int64_t> uid = kUnknown;  // of Door::kUnix: who connected
};

// What a call says of its caller.
struct Shown {
  std::optional<std::string> token;
  std::optional<PeerIdentity> certificate;  // of a valid one
};

// What the connection of a call says. False: the call came through no connection.
bool read_connection(const grpc::AuthContext& context, Connection* out);
// What a call shows, in its metadata and by its connection.
Shown shown_in(const grpc::CallbackServerContext& context);

// Whether a call of `path` may be made; called on gRPC's threads, for every call.
using CheckCall =
    std::function<absl::Status(const std::string& path, const Connection& connection, const Shown& shown)>;

// Credentials for connections of one kind, by which every call is checked before a service sees it. `connection` says
// what is known of their callers, and must not change once one of them is taken. `tls`: of this end, for Door::kTls.
std::shared_ptr<grpc::ServerCredentials> guarded_credentials(std::shared_ptr<const Connection> connection,
                                                             const TlsFiles& tls, CheckCall check);

}  // namespace wl

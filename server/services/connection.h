// How a call reached the coordinator and what identifies its caller: the kind of connection and its user, a token, a
// certificate.
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

// The kinds of connections.
enum class Door {
  kUnix,      // a unix socket; the kernel says which user connected
  kLoopback,  // plain-text TCP from any user of this machine
  kTls,       // TCP with TLS, from any machine
};

// What is known of the callers of a connection.
struct Connection {
  static constexpr int64_t kUnknown = -1;

  Door door = Door::kUnix;
  std::atomic<int64_t> uid = kUnknown;  // uid of the user that connected, for Door::kUnix
};

// The credentials of a call.
struct Shown {
  std::optional<std::string> token;         // the whole header `authorization`: "Bearer TOKEN"
  std::optional<PeerIdentity> certificate;  // contents of the caller's verified certificate
};

// Reads what is known of a call's connection. Returns false for a call through no connection (embedded mode).
bool read_connection(const grpc::AuthContext& context, Connection* out);
// Returns the credentials of a call: its token from the metadata, its certificate from the connection.
Shown shown_in(const grpc::CallbackServerContext& context);

// Decides whether a call of the method `path` is allowed. gRPC's threads call it for every call.
using CheckCall =
    std::function<absl::Status(const std::string& path, const Connection& connection, const Shown& shown)>;

// Returns credentials for connections of one kind, by which `check` sees every call before a service does. `connection`
// describes the callers of these connections and must not change once a connection was accepted. `tls`: certificate and
// key of this server, for Door::kTls.
std::shared_ptr<grpc::ServerCredentials> guarded_credentials(std::shared_ptr<const Connection> connection,
                                                             const TlsFiles& tls, CheckCall check);

}  // namespace wl

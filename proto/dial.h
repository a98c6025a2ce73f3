// Channels to a coordinator: by a unix socket or from the same machine as they are, from elsewhere by TLS; with a token
// where a caller has one.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "compiler/base/status.h"
#include "proto/tls.h"

namespace wl {

struct DialOptions {
  TlsFiles tls;            // not empty: by TLS
  std::string token_file;  // has the token that is shown, and is read for every call; or:
  std::string token;
};

// Returns a channel to "unix:PATH" or "HOST:PORT" that connects lazily and reconnects by itself. InvalidArgument:
// another machine is to be called without TLS. InvalidArgument or FailedPrecondition: a file of TLS or of the token
// cannot be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> dial(const std::string& address, const DialOptions& options);

// The error of a call on such a channel, or a more exact one when the connection fails for a reason that
// tls_problem() finds: Unauthenticated. May take some seconds.
absl::Status explained(const absl::Status& status, const std::string& address, const DialOptions& options);

// Whether HOST, as in "HOST:PORT", is this machine by its form: localhost, 127.x or ::1.
bool is_loopback(const std::string& host);

// A host, without brackets, and a port.
struct HostPort {
  std::string host;
  int port = 0;
};
// Parses "HOST:PORT" that is to be listened on. InvalidArgument, for the caller to say of what: it is none, or other
// machines reach it, which is only for those who speak TLS.
absl::StatusOr<HostPort> parse_listen_address(const std::string& address, bool tls);

// The token in the environment variable WARPLOOM_TOKEN, or "". The variable is removed, so that no other program that
// this one starts gets it. To be called before there are threads.
std::string take_token_variable();

// Whose connection it is, for bounds of each peer: the bytes of its IPv4 address, or of the half of its IPv6 address
// that a site is given. Empty: it came by a unix socket.
std::string peer_of(const sockaddr_storage& from);

}  // namespace wl

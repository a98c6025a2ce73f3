// Channels to a coordinator: in plain text over a unix socket or loopback, otherwise with TLS. Calls carry a token if
// the caller has one.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "compiler/base/status.h"
#include "proto/tls.h"

namespace wl {

struct DialOptions {
  TlsFiles tls;            // if any file is named, the channel uses TLS
  std::string token_file;  // file with the token of the calls, read again for every call; empty: `token` is used
  std::string token;       // empty, like token_file: calls carry no token
};

// Returns a channel to "unix:PATH" or "HOST:PORT" that connects lazily and reconnects by itself. InvalidArgument: the
// address is on another machine and no TLS file is named, or on a unix socket and one is, or a file of TLS or of the
// token cannot be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> dial(const std::string& address, const DialOptions& options);

// Returns `status`, the error of a call on such a channel, or Unauthenticated with a more exact reason if the
// connection failed and tls_problem() finds out why. May take some seconds.
absl::Status explained(const absl::Status& status, const std::string& address, const DialOptions& options);

// Whether HOST, as in "HOST:PORT", has the form of this machine's own addresses: localhost, 127.x or ::1.
bool is_loopback(const std::string& host);

// A host, without brackets, and a port.
struct HostPort {
  std::string host;
  int port = 0;
};
// Parses "HOST:PORT", an address to listen on. InvalidArgument: it has another form, or other machines can reach it and
// `tls` is false. The message does not repeat the address; the caller adds where it comes from.
absl::StatusOr<HostPort> parse_listen_address(const std::string& address, bool tls);

// Returns the token in the environment variable WARPLOOM_TOKEN, or "". Removes the variable, so that programs that this
// one starts do not inherit it. To be called before other threads are started.
std::string take_token_variable();

// Returns a key of a peer, by which connections are counted: the bytes of its IPv4 address, or the first 8 bytes of its
// IPv6 address, which all hosts of a site share. Empty: it connected over a unix socket.
std::string peer_of(const sockaddr_storage& from);

}  // namespace wl

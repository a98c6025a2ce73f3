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
  TlsFiles tls;            // the files for TLS, which the channel uses if any of them is named
  std::string token_file;  // file with the token of the calls, read anew for every call; empty: `token` is used
  std::string token;       // the token of the calls if `token_file` is empty; if both are empty, calls carry no token
};

// Returns a channel to "unix:PATH" or "HOST:PORT" that connects lazily and reconnects by itself. InvalidArgument: the
// address is on another machine and no TLS file is named; the address is a unix socket and a TLS file is named; or a
// TLS file or the token file cannot be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> dial(const std::string& address, const DialOptions& options);

// Explains an error of a call on a channel of dial(): returns Unauthenticated with a more exact reason if the
// connection failed and tls_problem() finds out why, otherwise `status`. May take some seconds.
absl::Status explained(const absl::Status& status, const std::string& address, const DialOptions& options);

// Whether HOST, as in "HOST:PORT", has the form of this machine's own addresses: localhost, 127.x or ::1.
bool is_loopback(const std::string& host);

// A host, without the brackets of an IPv6 address, and a port.
struct HostPort {
  std::string host;
  int port = 0;
};
// Parses "HOST:PORT", an address to listen on. InvalidArgument: the text has another form, or other machines can reach
// the address and `tls` is false. The message does not repeat the address; the caller adds where it comes from.
absl::StatusOr<HostPort> parse_listen_address(const std::string& address, bool tls);

// Returns the token in the environment variable WARPLOOM_TOKEN, or "". Removes the variable, so that child processes do
// not inherit it. To be called before other threads are started.
std::string take_token_variable();

// Returns a key by which the connections of a peer are counted: the bytes of its IPv4 address, or the first 8 bytes of
// its IPv6 address, which all hosts of a site share. Empty: the peer connected over a unix socket.
std::string peer_of(const sockaddr_storage& from);

}  // namespace wl

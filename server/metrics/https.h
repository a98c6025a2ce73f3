// The use of TLS by the HTTP server.
#pragma once

#include <optional>

#include "proto/tls.h"

struct ssl_ctx_st;
struct ssl_st;

namespace wl {

// Makes a server show the certificate `cert`, which is read for every connection, so that the file can be replaced.
// With `ca`, which is read once, callers are asked for a certificate, which they may show or not. Returns false if a
// file cannot be used. `files` must outlive the context.
bool set_up_tls(ssl_ctx_st* context, const TlsFiles* files);

// Returns the names in the peer's verified certificate; nullopt: the peer showed no certificate.
std::optional<PeerIdentity> identity_of_peer(const ssl_st* session);

}  // namespace wl

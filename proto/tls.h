// TLS between the processes: the files that both ends name, what is wrong with them, why a connection fails, and whom a
// certificate names.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// PEM files. They are read again when they change.
struct TlsFiles {
  std::string cert, key;  // what this end shows; both or neither
  std::string ca;         // who makes the certificates of the other end
  bool any() const { return !cert.empty() || !key.empty() || !ca.empty(); }
};

// OK when the files that are named can be used now. InvalidArgument: one cannot be read, is not PEM, does not fit the
// others, or has expired; the message says which, and what to do.
absl::Status check_tls_files(const TlsFiles& files);

// Why a TLS connection to "HOST:PORT" fails, found out by making one: the other end speaks no TLS, its certificate is
// not acceptable, or it does not accept ours. "" when nothing is wrong, or nobody answers. When `files` is empty: says
// so if the other end speaks TLS. Takes at most some seconds.
std::string tls_problem(const std::string& address, const TlsFiles& files);

// --- Who a certificate names. A certificate authority checks what it writes as the names of hosts and as URIs; what
// stands in the subject, such as the common name, is what the requester wrote. So an identity is the one URI name of a
// certificate (a subject alternative name of the type URI) and no other field of it: a SPIFFE ID, spiffe://DOMAIN/PATH.

struct PeerIdentity {
  std::string uri;           // empty: the certificate names nobody, and `problem` says why
  std::string problem;       // "it has 2 URI names"
  int64_t until_unix_s = 0;  // the certificate is valid up to here
};

// Of a certificate that was verified when the connection was made.
PeerIdentity identity_of(const X509* certificate);
PeerIdentity identity_in_pem(std::string_view pem);

// Whether the text is a SPIFFE ID in its one spelling: lower-case scheme and trust domain, no user, port, query,
// fragment, percent-encoding or control character, no empty part of the path, no "." or "..", no slash at its end.
// InvalidArgument says what was expected and what was found.
absl::Status check_spiffe_id(std::string_view uri);

// Whether the text is the name of a trust domain. InvalidArgument likewise.
absl::Status check_trust_domain(std::string_view domain);

// The trust domain of a SPIFFE ID, and its path without the first slash.
struct SpiffeParts {
  std::string domain, path;
};
SpiffeParts spiffe_parts(const std::string& id);

}  // namespace wl

// TLS between processes: the files that each end names, checks of these files, the reason for which a connection fails,
// and the identity in a certificate.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// The PEM files of one end. Channels and servers read them again when they change.
struct TlsFiles {
  std::string cert, key;  // certificate of this end, and its private key; both are set or neither
  std::string ca;         // certificates of the authorities that may issue the other end's certificate
  bool any() const { return !cert.empty() || !key.empty() || !ca.empty(); }
};

// Checks that the named files can be used now. InvalidArgument: a file cannot be read, is not PEM, does not fit the
// other files, or is not valid at this time; the message says which file, and what to do.
absl::Status check_tls_files(const TlsFiles& files);

// Returns why a TLS connection to "HOST:PORT" fails, which is found out by making one: the other end does not speak
// TLS, its certificate is not acceptable, or it does not accept our certificate. Returns "" if nothing is wrong or no
// server answers. If `files` is empty, a possible problem is that the other end does speak TLS. Takes some seconds at
// most.
std::string tls_problem(const std::string& address, const TlsFiles& files);

// --- The identity in a certificate is its only URI name (subject alternative name of type URI), and no other field: a
// SPIFFE ID, spiffe://DOMAIN/PATH. The reason: a certificate authority checks the host names and URIs that it writes,
// but copies the subject, such as the common name, from the request.

struct PeerIdentity {
  std::string uri;           // the SPIFFE ID; empty: the certificate has no identity, and `problem` says why
  std::string problem;       // why the certificate has no identity, for example "it has 2 URI names"
  int64_t until_unix_s = 0;  // end of the certificate's validity, in seconds since 1970
};

// Returns the identity in a certificate, which must have been verified when the connection was made.
PeerIdentity identity_of(const X509* certificate);
PeerIdentity identity_in_pem(std::string_view pem);

// Checks that the text is a SPIFFE ID in its only permitted spelling: lower-case scheme and trust domain; no user,
// port, query, fragment, percent-encoding or control character; no empty part of the path, no "." or ".."; no slash at
// the end. The InvalidArgument error says what was expected and what was found.
absl::Status check_spiffe_id(std::string_view uri);

// Checks that the text is the name of a trust domain. The error has the form of check_spiffe_id()'s error.
absl::Status check_trust_domain(std::string_view domain);

// The trust domain of a SPIFFE ID, and the ID's path without its first slash.
struct SpiffeParts {
  std::string domain, path;
};
SpiffeParts spiffe_parts(const std::string& id);

}  // namespace wl

// TLS between the processes: the files that both ends name, what is wrong with them, and why a connection fails.
#pragma once

#include <string>
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

}  // namespace wl

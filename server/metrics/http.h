// The HTTP server of a coordinator, for monitoring (/metrics, /healthz and /readyz) and for the web pages (server/web).
// It changes nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/base/status.h"
#include "proto/tls.h"

namespace wl {

// The parts of a GET request that pages look at. All of them are unverified claims of the caller, except `certificate`.
struct HttpQuestion {
  std::string path;                               // decoded, without the query
  std::map<std::string, std::string> parameters;  // of the query, decoded
  std::optional<std::string> authorization;       // the header
  std::string host;                               // the header; empty: there is none
  std::string known;                              // the ETag of the answer that the caller has already (If-None-Match)
  std::optional<PeerIdentity> certificate;        // the names in the caller's verified certificate (https.h)
};

struct HttpAnswer {
  int status = 200;
  std::string type;                         // MIME type of the body
  std::shared_ptr<const std::string> body;  // null: none
  std::vector<std::pair<std::string, std::string>> headers;
};
using AnswerHttp = std::function<std::optional<HttpAnswer>(const HttpQuestion&)>;

// Whether the header Host is missing or a name of this machine alone, such as localhost. Another site can give its own
// name this machine's address and so make a browser send requests here (DNS rebinding), but the browser still sends
// that name.
bool is_own_name(std::string_view host);

struct HttpOptions {
  std::string address;  // "HOST:PORT"
  // `cert` and `key` make it HTTPS. With `ca` a caller may show a certificate, which must then be a valid one.
  TlsFiles tls;
  std::function<std::string()> metrics;
  std::function<std::string()> not_ready;  // for /readyz: why no work is given out; "": it is
  AnswerHttp pages = {};                   // called on several threads; nullopt: there is no such page
};

class HttpServer {
 public:
  // Listens and serves. InvalidArgument: not HOST:PORT, or a HOST that other machines reach without TLS; Unavailable:
  // the port is in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> open(const HttpOptions& options);
  ~HttpServer();  // Waits for running requests, none of which takes long.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address() const;  // with the bound port

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl

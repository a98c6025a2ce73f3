// The HTTP server of a coordinator, for monitoring (/metrics, /healthz and /readyz) and for the web pages (server/web).
// No request changes anything.
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
  std::string path;                               // decoded path, without the query
  std::map<std::string, std::string> parameters;  // decoded parameters of the query
  std::optional<std::string> authorization;       // the header Authorization; nullopt: it is missing
  std::string host;                               // the header Host; empty: it is missing
  std::string known;                              // the ETag of the answer that the caller has already (If-None-Match)
  std::optional<PeerIdentity> certificate;        // names in the caller's verified certificate (https.h); nullopt: none
};

struct HttpAnswer {
  int status = 200;
  std::string type;                         // MIME type of the body
  std::shared_ptr<const std::string> body;  // the body of the answer; null: it has none
  std::vector<std::pair<std::string, std::string>> headers;
};
using AnswerHttp = std::function<std::optional<HttpAnswer>(const HttpQuestion&)>;

// Whether the header Host is missing or is a name of this machine alone, such as localhost. By giving its own name this
// machine's address, another site can make a browser send requests here (DNS rebinding), but the browser still sends
// that site's name as Host.
bool is_own_name(std::string_view host);

struct HttpOptions {
  std::string address;  // the address to listen on, as "HOST:PORT"
  // With `cert` and `key` the server uses HTTPS. With `ca` a caller may show a certificate, which must then be valid.
  TlsFiles tls;
  std::function<std::string(const HttpQuestion&)> metrics;
  std::function<std::string()> not_ready;  // returns why workers get no work, for /readyz; "": they get work
  AnswerHttp pages = {};  // answers requests for pages, on several threads; nullopt: there is no such page
};

class HttpServer {
 public:
  // Listens and serves. InvalidArgument: the address is not HOST:PORT, or other machines reach HOST but there is no
  // TLS; Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> open(const HttpOptions& options);
  ~HttpServer();  // Waits until running requests, none of which takes long, are answered.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address() const;  // returns the address: HOST as it was given, with the bound port

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl

// The HTTP side of a coordinator, for those who watch it: /metrics, /healthz and /readyz, and the pages for people
// (server/web). It only reads.
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

// A GET, as far as pages look at it. All of it is what the caller says, except `certificate`.
struct HttpQuestion {
  std::string path;                               // decoded, without the query
  std::map<std::string, std::string> parameters;  // of the query, decoded
  std::optional<std::string> authorization;       // the header
  std::string host;                               // likewise; empty: there is none
  std::string known;                              // the ETag of what the caller has already (If-None-Match)
  std::optional<PeerIdentity> certificate;        // the valid one that the caller showed (https.h)
};

struct HttpAnswer {
  int status = 200;
  std::string type;                         // of the body
  std::shared_ptr<const std::string> body;  // null: none
  std::vector<std::pair<std::string, std::string>> headers;
};
using AnswerHttp = std::function<std::optional<HttpAnswer>(const HttpQuestion&)>;

// Whether the header Host is a name of this machine alone, or is missing. A page of another site may give its own name
// this machine's address and make a browser ask, but the browser still says the name.
bool is_own_name(std::string_view host);

struct HttpOptions {
  std::string address;  // "HOST:PORT"
  // `cert` and `key` make it HTTPS. With `ca` a caller may show a certificate, which must then be a valid one.
  TlsFiles tls;
  std::function<std::string()> metrics;
  std::function<std::string()> not_ready;  // why no work is given out; "": it is
  AnswerHttp pages = {};                   // on several threads; nullopt: there is no such page
};

class HttpServer {
 public:
  // Listens and serves. InvalidArgument: no HOST:PORT, or a HOST that other machines reach without TLS; Unavailable: it
  // is in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> open(const HttpOptions& options);
  ~HttpServer();  // Calls that are under way end first; none takes long.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address() const;  // with the bound port

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl

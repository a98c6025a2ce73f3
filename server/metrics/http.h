// The HTTP side of a coordinator, for those who watch it: /metrics, /healthz and /readyz. It reads and changes nothing
// else.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compiler/base/status.h"
#include "proto/tls.h"

namespace wl {

struct HttpOptions {
  std::string address;  // "HOST:PORT"
  TlsFiles tls;         // `cert` and `key` make it HTTPS; they are read once
  std::function<std::string()> metrics;
  std::function<std::string()> not_ready;  // why no work is given out; "": it is
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

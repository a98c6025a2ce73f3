// The web pages of a coordinator and the JSON that they show: decides who may see them, and caches answers. Nothing can
// be changed here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/metrics/http.h"
#include "server/services/services.h"

namespace wl {

// The callers that may read an address of the API are those that may make `call`. * stands for any one part of the
// path.
struct HttpRule {
  std::string path, call;
};
std::vector<HttpRule> http_rules();

class Web {
 public:
  // What `serving` points to, and the authorizer, must outlive the pages. `tls`: callers come by TLS; otherwise they
  // are on this machine.
  Web(const Serving& serving, Authorizer* authorizer, bool tls);
  ~Web();
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;

  // Any thread. nullopt: there is no such page.
  std::optional<HttpAnswer> answer(const HttpQuestion& question);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl

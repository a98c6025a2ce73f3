// The pages of a coordinator for people, and the JSON that they show: who may see them, and what is kept for those who
// ask the same again. Everything is read; nothing can be changed here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/metrics/http.h"
#include "server/services/services.h"

namespace wl {

// Who may ask for an address of the API: who may make this call. * stands for any one part of the path.
struct HttpRule {
  std::string path, call;
};
std::vector<HttpRule> http_rules();

class Web {
 public:
  // What `serving` points to, and the authorizer, must outlive the pages. `tls`: callers come by TLS; otherwise they
  // are of this machine.
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

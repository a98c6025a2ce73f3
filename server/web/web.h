// The web pages of a coordinator and the JSON that they show: this part decides who may see them, and caches answers.
// The pages cannot change anything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/metrics/http.h"
#include "server/services/services.h"

namespace wl {

// An address of the API. A caller may read it if it may make the RPC `call`. In `path`, * stands for any one part.
struct HttpRule {
  std::string path, call;
};
std::vector<HttpRule> http_rules();

class Web {
 public:
  // The authorizer, and everything that `serving` points to, must outlive the pages. `tls`: callers come by TLS;
  // without it, they are on this machine.
  Web(const Serving& serving, Authorizer* authorizer, bool tls);
  ~Web();
  Web(const Web&) = delete;
  Web& operator=(const Web&) = delete;

  // Answers a request. nullopt: there is no such page. Thread-safe.
  std::optional<HttpAnswer> answer(const HttpQuestion& question);
  // Returns the metrics of what programs ran (usage_text() of server/metrics/metrics.h), as far as GetUsage shows it to
  // the caller; empty: it does not, or the sums are not known. Thread-safe.
  std::string usage_metrics(const HttpQuestion& question) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wl

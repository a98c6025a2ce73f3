// Builds what is served and nobody has built yet: records of older versions, of other coordinators, and those whose
// search was cut short. One after another, on a thread that gives way to all others (docs/decisions/0085).
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "proto/signing.h"
#include "server/engine/engine.h"
#include "server/store/store.h"

namespace wl {

class Vouching {
 public:
  struct Parts {
    Store* store;
    const SigningKey* signing;
    Build build;
    std::function<void(const std::string& key)> changed;  // a record says more now; on the thread of this object
  };
  // All must outlive the object. Begins at once.
  explicit Vouching(Parts parts);
  ~Vouching();  // A build that has begun is given up.
  Vouching(const Vouching&) = delete;
  Vouching& operator=(const Vouching&) = delete;

  void wake();  // There may be new records. Any thread.

 private:
  void serve();
  void look_through();
  void vouch(const KernelRecord& record);

  const Parts parts_;
  std::set<std::string> not_here_;  // compilers that this machine lacks
  int64_t seen_ = 0;                // records up to this id were looked at
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool woken_ = true;
  std::thread thread_;
};

}  // namespace wl

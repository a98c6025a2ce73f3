// Keeps up what this coordinator says of the records that it serves, on a thread of the lowest priority. It builds what
// nobody has built yet: records of older versions, of other coordinators, and those whose search was cut short
// (docs/design/trust.md#object-provenance). It signs anew all that was promoted here when only a new generation tells
// the records that are right from those that are not (docs/design/trust.md#generations).
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proto/trust/signing.h"
#include "server/engine/engine.h"
#include "server/store/store.h"

namespace wl {

class Vouching {
 public:
  struct Parts {
    Store* store;
    const SigningKey* signing;
    std::vector<Signer> signers;  // whose records are signed anew: this coordinator's, and its own keys of before
    Build build;                  // empty: nothing is built here
    std::function<void(const std::string& key)> changed;  // a record says more now; on the thread of this object
  };
  // All must outlive the object. Begins at once.
  explicit Vouching(Parts parts);
  ~Vouching();  // A build that has begun is given up.
  Vouching(const Vouching&) = delete;
  Vouching& operator=(const Vouching&) = delete;

  void wake();  // There may be new records, or fewer. Any thread.

 private:
  void serve();
  // Visits what is served, in the order of the ids, after `*seen`.
  bool go_through(int64_t* seen, const std::function<absl::Status(const KernelRecord&)>& visit);
  void sign_anew();
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

// Completes the statements of this coordinator about the records that it serves, on a thread of the lowest priority. It
// builds the objects that no coordinator has built yet: of older versions' records, of other coordinators' records, and
// of searches that were cut short (docs/design/trust.md#object-provenance). And it signs all records that were promoted
// here again when only a new generation can tell the valid ones from the others (docs/design/trust.md#generations).
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
    std::vector<Signer> signers;  // whose records are signed again: this coordinator's key and those of --signers,
                                  // where its former keys belong
    Build build;                  // empty: this coordinator builds nothing
    std::function<void(const std::string& key)> changed;  // called on this object's thread when a record of the key has
                                                          // new statements
  };
  // All pointers must outlive the object. Its thread starts at once.
  explicit Vouching(Parts parts);
  ~Vouching();  // Cancels a build that is in progress.
  Vouching(const Vouching&) = delete;
  Vouching& operator=(const Vouching&) = delete;

  void wake();  // Records may have been added or removed. Any thread.

 private:
  void serve();
  // Visits the served records with ids above `*seen`, in order, and advances `*seen`. Returns false if it ended early:
  // stopping, or an error of the store or of `visit`.
  bool go_through(int64_t* seen, const std::function<absl::Status(const KernelRecord&)>& visit);
  void sign_anew();
  void look_through();
  void vouch(const KernelRecord& record);

  const Parts parts_;
  std::set<std::string> not_here_;  // compilers (with versions) that this machine lacks; this object's thread only
  int64_t seen_ = 0;                // look_through() has visited the records up to this id
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool woken_ = true;
  std::thread thread_;
};

}  // namespace wl

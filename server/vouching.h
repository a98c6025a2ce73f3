// Completes what this coordinator states about the records that it serves, on a thread of the lowest priority. It
// builds objects that no coordinator has built yet: for records of older versions, of other coordinators, and of
// searches that were cut short (docs/design/trust.md#object-provenance). It also signs all records again that were
// promoted here, when it takes a new generation to tell valid records from invalid ones
// (docs/design/trust.md#generations).
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
    // Signers whose records are signed again: this coordinator's key and --signers, which should have its former keys.
    std::vector<Signer> signers;
    Build build;  // compiles objects; empty: this coordinator compiles nothing
    // Called on this object's thread when a record of the key was signed again, or when its object was built here.
    std::function<void(const std::string& key)> changed;
  };
  // All pointers must outlive the object. Its thread starts at once.
  explicit Vouching(Parts parts);
  ~Vouching();  // Cancels a compilation that is in progress.
  Vouching(const Vouching&) = delete;
  Vouching& operator=(const Vouching&) = delete;

  void wake();  // Tells this object's thread that records may have been added or removed. Thread-safe.

 private:
  void serve();
  // Visits the served records with ids above `*seen`, in order, and advances `*seen`. Returns false if this ended
  // early: the object is being destroyed, or the store or `visit` returned an error.
  bool go_through(int64_t* seen, const std::function<absl::Status(const KernelRecord&)>& visit);
  void sign_anew();
  void look_through();
  void vouch(const KernelRecord& record);

  const Parts parts_;
  // Compilers, with their versions, that this machine has turned out to lack; used by this object's thread only.
  std::set<std::string> not_here_;
  int64_t seen_ = 0;  // id of the last record that look_through() has visited
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards the members declared below, except the thread
  std::condition_variable changed_;
  bool woken_ = true;
  std::thread thread_;
};

}  // namespace wl

// Remembers the generations of signed records that a client has seen (docs/design/trust.md#generations): the least that
// is allowed for a signer, for a key, and for a key in an environment. A record of a lower generation was replaced,
// revoked or invalidated since, whichever coordinator delivers it, and is refused.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "proto/trust/signing.h"

namespace wl {

// Several threads may use the object at a time.
class SeenGenerations {
 public:
  // Reads `file` now, and later appends a line for each new number, for processes that start then. If `file` is empty
  // or cannot be written, only this object remembers. `as`: the caller's credentials, which are part of the scope of a
  // key in an environment, because a team may be served a record of its own.
  SeenGenerations(std::string file, std::string_view as);
  // Uses the file "generations" in the user's cache folder, or no file if there is no such folder.
  static std::shared_ptr<SeenGenerations> of_user(std::string_view as);

  bool has_heard() const;  // returns whether hear() was called
  // Takes over the heads of signers: the least generations that the signers allow. The heads must be sound
  // (proto/trust/signing.h).
  void hear(const std::vector<StoreHead>& heads);
  // Checks that a record that one of the signers signed may be used, and remembers its generation. PermissionDenied:
  // the record is too old, or its signer's head is missing or too old. `where`: the coordinator's name for the message.
  absl::Status admit(const KernelRecord& record, const std::vector<Signer>& signers, const std::string& where);

 private:
  void read();
  // Raises the least generation of a scope, and returns the line to write; "" if it was as high already. The caller
  // holds mutex_.
  std::string raise(const std::string& scope, int64_t generation);
  void write(const std::string& lines);  // appends lines to the file; the caller holds mutex_

  const std::string file_, as_;
  mutable std::mutex mutex_;  // guards the members below
  bool heard_ = false;
  // Least allowed generations by scope: "SIGNER", "SIGNER KEY", or "SIGNER KEY HASH", where HASH is that of `as_` and
  // the environment.
  std::map<std::string, int64_t, std::less<>> floors_;
  std::map<std::string, int64_t> said_;  // for each signer, when its newest head was signed, in ms since 1970
};

}  // namespace wl

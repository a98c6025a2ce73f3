// What a client has seen of the generations of signed records (docs/design/trust.md#generations): of every signer, of
// a key, and of a key in an environment. A record below what was seen is one of yesterday, whoever gives it.
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

// Any thread.
class SeenGenerations {
 public:
  // Reads the file, and adds a line to it for what is new: one process after another remembers, several at once as
  // well. What cannot be written is remembered by this object alone, and so is everything if `file` is empty. `as`:
  // whom the coordinator answers, since a team may be served another record of a key than everybody.
  SeenGenerations(std::string file, std::string_view as);
  // With the file "generations" in the user's cache folder, if there is one.
  static std::shared_ptr<SeenGenerations> of_user(std::string_view as);

  bool has_heard() const;                          // whether hear() was called
  void hear(const std::vector<StoreHead>& heads);  // sound ones (proto/trust/signing.h), of signers
  // Whether a record may be used that one of the signers signed; then it is what was seen. PermissionDenied: no, and
  // what to do.
  absl::Status admit(const KernelRecord& record, const std::vector<Signer>& signers, const std::string& where);

 private:
  void read();
  std::string raise(const std::string& scope, int64_t generation);  // with the lock held; the line to write
  void write(const std::string& lines);                             // likewise

  const std::string file_, as_;
  mutable std::mutex mutex_;  // guards the rest
  bool heard_ = false;
  std::map<std::string, int64_t, std::less<>> floors_;  // by scope: "SIGNER", "SIGNER KEY" or "SIGNER KEY ENVIRONMENT"
  std::map<std::string, int64_t> said_;                 // by signer, when its head was said, in Unix milliseconds
};

}  // namespace wl

// Bundles that were had from coordinators, kept in a folder that several processes use at the same time:
//
//   CACHE/KEY/MADE-PROCESS     a bundle; MADE: when it was asked for, in ns since 1970
//
// An entry never changes. A newer one of the same key is another folder. A lock on the folder of an entry keeps others
// from removing it. The folder is as trustworthy as its owner: loading a bundle runs its code.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compiler/base/status.h"

namespace wl {

class DiskCache {
 public:
  struct Entry {
    std::string folder;
    std::shared_ptr<const void> hold;  // while it lives, nobody removes the folder
    std::chrono::system_clock::time_point made;
  };

  // Uses, and makes if need be, `folder`. Of the entries that nobody uses, those that were used least recently are
  // removed when all together have more than `most_bytes`.
  DiskCache(std::string folder, int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Returns the newest entry of a key.
  std::optional<Entry> find(const std::string& key) const;
  // Adds an entry that `write` makes, which is given the path of a folder that does not exist. Errors are those of
  // `write`, or that the cache cannot be written.
  using Write = std::function<absl::Status(const std::string& folder)>;
  absl::StatusOr<Entry> add(const std::string& key, const Write& write) const;
  // Why nothing can be added now, as found by writing a file of a megabyte; "" if it can.
  std::string why_not_writable() const;
  // Removes an entry whatever its use is: it is damaged. False: it cannot be removed.
  static bool remove(const Entry& entry);

 private:
  void evict() const;
  std::string folder_;
  int64_t most_bytes_;
};

// The folder of a cache, and what it needs to stay.
struct CacheFolder {
  std::string folder;
  std::shared_ptr<const void> hold = nullptr;
};
// Makes the folder of a cache, which nobody but its user may enter, if there is none. FailedPrecondition: it belongs to
// another user, or others may write there. InvalidArgument: it cannot be made.
absl::StatusOr<CacheFolder> open_cache(const std::string& folder);
// A new folder, which is removed when nobody holds it any more. Unavailable: it cannot be made.
absl::StatusOr<CacheFolder> temporary_cache();

// "bundles" in the user's cache folder. FailedPrecondition: neither XDG_CACHE_HOME nor HOME is set.
absl::StatusOr<std::string> default_cache_folder();

}  // namespace wl

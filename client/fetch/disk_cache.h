// A cache of bundles from coordinators, in a folder that several processes use at the same time:
//
//   CACHE/KEY/MADE-PROCESS     a bundle; MADE: when it was requested, in ns since 1970; PROCESS: id of the process
//
// An entry never changes; a newer bundle of the same key is another entry. A process that uses an entry holds a shared
// lock (flock) on its folder, so that no other process evicts it. Loading a bundle runs its code, so only the user who
// owns the cache may write to it.
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
    std::shared_ptr<const void> hold;            // a shared lock that keeps the entry's folder from being removed
    std::chrono::system_clock::time_point made;  // time at which the bundle was requested
  };

  // Uses `folder`, which add() creates if it is missing. When all entries together have more than `most_bytes` bytes,
  // the least recently used entries are removed, except those that a process uses.
  DiskCache(std::string folder, int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Returns the newest entry of a key, and marks it as used now.
  std::optional<Entry> find(const std::string& key) const;
  // Adds an entry: `write` writes a bundle to a folder that does not exist yet. The error is one of `write`, or says
  // that the cache cannot be written.
  using Write = std::function<absl::Status(const std::string& folder)>;
  absl::StatusOr<Entry> add(const std::string& key, const Write& write) const;
  // Writes and removes a file of a mebibyte, and returns why that fails; "" if it succeeds.
  std::string why_not_writable() const;
  // Removes a damaged entry, even while it is in use. Returns whether it is gone.
  static bool remove(const Entry& entry);

 private:
  // Removes entries beyond the limit, and folders that a process left unfinished.
  void evict() const;
  std::string folder_;
  int64_t most_bytes_;
};

// The folder of a cache. A temporary folder is removed when the last copy of `hold` is destroyed.
struct CacheFolder {
  std::string folder;
  std::shared_ptr<const void> hold = nullptr;
};
// Opens the folder of a cache, and creates it with access for its user alone if it is missing. FailedPrecondition: it
// belongs to another user, or others may write there. InvalidArgument: it cannot be created, or is no folder.
absl::StatusOr<CacheFolder> open_cache(const std::string& folder);
// Creates a temporary folder. Unavailable: it cannot be created.
absl::StatusOr<CacheFolder> temporary_cache();

// Returns the path of "bundles" in the user's cache folder. FailedPrecondition: neither XDG_CACHE_HOME nor HOME is set.
absl::StatusOr<std::string> default_cache_folder();

}  // namespace wl

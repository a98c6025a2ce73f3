// Bundles for programs that serve: from this process, from a cache on disk, from a coordinator, or a fallback, in this
// order, and never later than the caller allows.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/fetch/disk_cache.h"
#include "client/fetch/request.h"
#include "client/program/loaded.h"

namespace wl {

enum class BundleFrom { kProcess, kDisk, kCoordinator, kFallback };

struct ClientOptions {
  Ask ask = nullptr;     // null: there is no coordinator, and only the caches are looked at
  std::string identity;  // distinguishes coordinators and whom they are trusted to be; part of the key of the cache
  CacheFolder cache;
  int64_t cache_bytes = int64_t{4} << 30;
  // A bundle that is older is used, and asked for again in the background; absent: it is never too old.
  std::optional<std::chrono::seconds> fresh = std::chrono::hours(24);
  // After an error, a request is not asked again for so long: calls meanwhile get the same error at once.
  std::chrono::milliseconds pause = std::chrono::seconds(5);
};

// Thread-safe. What is asked for several times at once is asked once.
class Client {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Client(ClientOptions options);
  // Ends what is still being asked, and waits for that.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Found {
    std::shared_ptr<const LoadedBundle> bundle;
    BundleFrom from = BundleFrom::kProcess;
  };
  // Returns by the deadline, but for the time that reading files takes; without one it waits for the coordinator. What
  // is not there in time goes on in the background, and a later call has it. `fallback`: a bundle to return instead of
  // an error of the coordinator or of a deadline; empty: none. InvalidArgument: the request or the fallback cannot be.
  // NotFound: no coordinator to ask, or its store has no kernels and may not search. DeadlineExceeded: as it says.
  // Otherwise what the coordinator said.
  absl::StatusOr<Found> load(const BundleRequest& request, std::optional<Clock::time_point> deadline,
                             const std::string& fallback = "");

 private:
  struct Slot {
    std::shared_ptr<const LoadedBundle> bundle;
    std::chrono::system_clock::time_point made;
    bool asking = false;
    std::jthread thread;      // that asks, or has asked
    absl::Status error;       // of the last time that it was asked
    Clock::time_point again;  // not to be asked before
  };
  absl::StatusOr<std::string> key_of(const BundleRequest& request);
  absl::StatusOr<Found> take(const std::string& key, const DiskCache::Entry& entry);
  std::optional<Found> from_disk(const std::string& key);
  absl::StatusOr<DiskCache::Entry> add(const std::string& key, const DiskCache::Write& write);
  absl::Status asked(const std::string& key, const BundleRequest& request);
  void begin_asking(const std::string& key, const BundleRequest& request);
  absl::StatusOr<Found> await(const std::string& key, const BundleRequest& request,
                              std::optional<Clock::time_point> deadline);

  ClientOptions options_;
  const DiskCache disk_;
  std::mutex spare_mutex_;
  std::optional<CacheFolder> spare_;  // where the cache cannot be written
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Slot> slots_;  // by key
  struct Digest {
    int64_t bytes = 0, changed_ns = 0;
    std::string sha256;
  };
  std::map<std::string, Digest> digests_;  // of files that were read, by path
};

}  // namespace wl

// Finds bundles for programs that serve models: in this process, in a cache on disk, at a coordinator, or a fallback,
// in this order, and by a deadline.
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
#include "client/fetch/use_reporter.h"
#include "client/program/loaded.h"

namespace wl {

enum class BundleFrom { kProcess, kDisk, kCoordinator, kFallback };

struct ClientOptions {
  Ask ask = nullptr;                 // asks the coordinator for a bundle; null: only the caches are searched
  UseReporter::Tell tell = nullptr;  // tells the coordinator what is run; null: it is told nothing
  std::string identity;  // hash of the coordinator's address, credentials and signers; part of the cache's keys
  CacheFolder cache;
  int64_t cache_bytes = int64_t{4} << 30;
  // A bundle of a greater age is still used, but is requested again in the background. Absent: any age will do.
  std::optional<std::chrono::seconds> fresh = std::chrono::hours(24);
  // Pause after a request that failed, in which no equal request is made: calls return the same error at once.
  std::chrono::milliseconds pause = std::chrono::seconds(5);
};

// Thread-safe, except that no other call may run during the destructor. Equal requests at the same time are one request
// to the coordinator, on a thread of its own.
class Client {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Client(ClientOptions options);
  // Cancels the requests to the coordinator, and waits until they have ended.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Found {
    std::shared_ptr<const LoadedBundle> bundle;
    BundleFrom from = BundleFrom::kProcess;
  };
  // Finds or requests a bundle. Waits for the coordinator until the deadline (not counting the time for reading files)
  // or, without a deadline, until the coordinator answers. A request that misses the deadline goes on in the
  // background, for later calls. `fallback`: folder of a bundle that is returned instead of an error of the coordinator
  // or a missed deadline; empty: none. InvalidArgument: the request is wrong, or the fallback is no bundle. NotFound:
  // there is no coordinator, or its store has no kernels and the request allows no search. DeadlineExceeded: the
  // deadline was missed. Other errors are the coordinator's.
  absl::StatusOr<Found> load(const BundleRequest& request, std::optional<Clock::time_point> deadline,
                             const std::string& fallback = "");

 private:
  // What this process knows about the bundle of one key.
  struct Slot {
    std::shared_ptr<const LoadedBundle> bundle;  // the bundle of this key; null: not loaded
    std::chrono::system_clock::time_point made;  // time at which the bundle was requested
    bool asking = false;                         // whether a request to the coordinator is under way
    std::jthread thread;      // the thread that makes, or has made, the latest request to the coordinator
    absl::Status error;       // result of the latest request to the coordinator
    Clock::time_point again;  // time before which no further request to the coordinator is made
  };
  absl::StatusOr<std::string> key_of(const BundleRequest& request);
  // Loads an entry of a cache and keeps it for later calls.
  absl::StatusOr<Found> take(const std::string& key, const DiskCache::Entry& entry);
  std::optional<Found> from_disk(const std::string& key);
  absl::StatusOr<DiskCache::Entry> add(const std::string& key, const DiskCache::Write& write);
  // Asks the coordinator, on the calling thread, and keeps the answer.
  absl::Status asked(const std::string& key, const BundleRequest& request);
  void begin_asking(const std::string& key, const BundleRequest& request);
  absl::StatusOr<Found> await(const std::string& key, const BundleRequest& request,
                              std::optional<Clock::time_point> deadline);

  ClientOptions options_;
  const std::shared_ptr<UseReporter> reporter_;  // null: the coordinator is told nothing
  const DiskCache disk_;
  std::mutex spare_mutex_;             // guards spare_
  std::optional<CacheFolder> spare_;   // temporary cache, used in place of one that cannot be written
  std::stop_source stop_;              // stopping this ends all requests to the coordinator
  std::mutex mutex_;                   // guards slots_ and digests_
  std::condition_variable changed_;    // notified when a request to the coordinator has ended
  std::map<std::string, Slot> slots_;  // for each key, what this process knows about its bundle
  // Digest of a graph's file, valid while the file's size and time of change stay the same.
  struct Digest {
    int64_t bytes = 0, changed_ns = 0;
    std::string sha256;
  };
  std::map<std::string, Digest> digests_;  // for each path of a graph's file, its digest
};

}  // namespace wl

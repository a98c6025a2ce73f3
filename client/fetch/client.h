// Finds bundles for programs that serve models: in this process, in a cache on disk, at a coordinator, or a fallback,
// in this order, and by a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/fetch/disk_cache.h"
#include "client/fetch/request.h"
#include "client/fetch/standing.h"
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
  // Pause after a request that failed, in which no equal request is made: calls return the same error at once. A search
  // in the background that fails again pauses twice as long each time, an hour at most.
  std::chrono::milliseconds pause = std::chrono::seconds(5);
  // How many searches in the background run at the coordinator at a time; further ones wait in this client.
  int most_searches = 4;
};

// Thread-safe, except that no other call may run during the destructor. Equal requests at the same time are one request
// to the coordinator, on a thread of its own.
//
// A request with Tune::kLater has two halves: predicted kernels, for which calls wait, and a search. Each half has a
// key and a slot of its own, also on disk, so what was predicted is never taken for what was searched. The search
// begins when the predicted kernels are there, and no call waits for it.
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
    std::shared_ptr<const BundleStanding> standing;  // how the kernels were chosen; null for a fallback
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
  // A half of a request, or a whole request that has no halves: what is asked for, and the key of the answer.
  struct Half {
    std::string key;
    BundleRequest request;
    std::string whole;  // the key of the search or, if the request has no halves, `key`
  };
  // What this process knows about the bundle of one key.
  struct Slot {
    std::shared_ptr<const LoadedBundle> bundle;  // the bundle of this key; null: not loaded
    std::shared_ptr<BundleStanding> standing;    // what callers are told of the bundle; null: not loaded
    std::chrono::system_clock::time_point made;  // time at which the bundle was requested
    bool asking = false;                         // whether a request to the coordinator is under way
    bool queued = false;                         // whether queue_ has the key
    int failures = 0;                            // how many requests to the coordinator have failed in a row
    std::jthread thread;  // the thread that makes, or has made, the latest request to the coordinator
    absl::Status error;   // result of the latest request to the coordinator
    // Times before which no further request, and no search in the background, is made.
    Clock::time_point again, search_again;
    std::optional<BundleRequest> search;  // the search that begins after the request that is under way; absent: none
  };
  // What another bundle may replace: the bundle of a half or, if a search has none yet, the predicted one.
  struct Present {
    std::shared_ptr<const LoadedBundle> bundle;
    std::shared_ptr<BundleStanding> standing;
  };
  absl::StatusOr<std::string> key_of(const BundleRequest& request);
  // Loads an entry of a cache and keeps it for later calls, unless the process has a newer one.
  absl::StatusOr<Found> take(const Half& half, const DiskCache::Entry& entry);
  std::shared_ptr<const LoadedBundle> drop_first(const std::string& whole);
  Present present_of(const Half& half);                 // the caller holds mutex_
  bool is_old(const Slot& slot) const;                  // whether the slot's bundle is to be asked for again
  std::optional<Found> loaded(const std::string& key);  // what the process has; the caller holds mutex_
  std::optional<Found> from_disk(const Half& half);
  absl::StatusOr<DiskCache::Entry> add(const std::string& key, const DiskCache::Write& write);
  // Asks the coordinator, on the calling thread, and keeps the answer.
  absl::Status asked(const Half& half);
  void begin_asking(const Half& half, const std::optional<Half>& search);
  void begin_search(const Half& half);
  void end_asking(const Half& half, const absl::Status& status);
  absl::StatusOr<Found> await(const Half& half, std::optional<Clock::time_point> deadline);
  std::optional<Found> searched(const Half& search, const std::string& first_key);
  absl::StatusOr<Found> load_half(const Half& half, const std::optional<Half>& search,
                                  std::optional<Clock::time_point> deadline, const std::string& fallback);

  ClientOptions options_;
  const std::shared_ptr<UseReporter> reporter_;  // null: the coordinator is told nothing
  const DiskCache disk_;
  std::mutex spare_mutex_;             // guards spare_
  std::optional<CacheFolder> spare_;   // temporary cache, used in place of one that cannot be written
  std::stop_source stop_;              // stopping this ends all requests to the coordinator
  std::mutex mutex_;                   // guards the members below
  std::condition_variable changed_;    // notified when a request to the coordinator has ended
  std::map<std::string, Slot> slots_;  // for each key, what this process knows about its bundle
  int searching_ = 0;                  // number of searches in the background that are under way
  std::deque<Half> queue_;             // further searches, in the order in which they begin
  // Digest of a graph's file, valid while the file's size and time of change stay the same.
  struct Digest {
    int64_t bytes = 0, changed_ns = 0;
    std::string sha256;
  };
  std::map<std::string, Digest> digests_;  // for each path of a graph's file, its digest
};

}  // namespace wl

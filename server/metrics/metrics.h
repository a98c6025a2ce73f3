// The Prometheus metrics of a coordinator: calls, trials, leases, the queue, workers and the store. Names follow the
// conventions of Prometheus (prometheus.io/docs/practices/naming). Labels have few values, whatever callers do: neither
// a worker's name nor a key is a label, and a team only in usage_text().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "proto/usage.h"

namespace wl {

// Figures of a coordinator that are looked up when Prometheus asks for the metrics.
struct CoordinatorState {
  std::map<std::string, int64_t> ready_candidates;  // number of candidates that wait for a worker, by target
  int64_t queued_jobs = 0, running_jobs = 0;
  int64_t workers_alive = 0, workers_gone = 0;
  int64_t leases = 0;
  int64_t database_bytes = 0, log_bytes = 0;   // bytes of the store's file and of its write-ahead log
  int64_t objects_bytes = 0;                   // bytes of the compiled objects beside the store
  int64_t heap_bytes = 0, resident_bytes = 0;  // bytes of the process: in allocations, and resident; 0: not known
  double processor_s = 0;                      // processor time of the process, in seconds
  int64_t descriptors = 0;
  bool drained = false;
  std::optional<bool> upstream_up;  // whether the upstream can be reached; nullopt: there is no upstream
};

// Returns the processor time and the open descriptors of this process; the other fields are unset.
CoordinatorState process_state();

// Returns the metrics of what programs ran, in the same format: of at most kMostShares teams. They have the names of
// teams as labels, so that only those may read them who may call GetUsage, each for what it shows them.
std::string usage_text(const Usage& usage);

// Every function may be called from any thread.
class Metrics {
 public:
  // `lease_ends`: all reasons that lease_ended() may be told; their counters exist from the start, at 0.
  explicit Metrics(std::span<const char* const> lease_ends);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Counts a call that has ended. `method`: such as "/warploom.v1.Admin/Drain"; a method that the protocol does not
  // have counts as "unknown". `code`: the name of the call's gRPC status, such as "NOT_FOUND". `waits`: the call waited
  // for something to happen, so its duration is not recorded.
  void call_ended(const std::string& method, const std::string& code, double seconds, bool waits);
  void trials_stored(const std::vector<Trial>& trials);
  // Count a question to the upstream coordinator, or an offer of a record to it, by its outcome.
  void upstream_asked(const std::string& outcome);
  void upstream_offered(const std::string& outcome);
  void reverified(
      const std::string& outcome);           // counts an outcome of verifying records again: "kept", "moved" or "lost"
  void commit_ended(double seconds);         // notes the seconds of a transaction of the store, fsync included
  void lease_ended(const std::string& why);  // counts a lease that ended without a report, by the reason
  // Counts the records that clients asked for by key or digest: those found, and those not found.
  void fetched(int64_t hits, int64_t misses);
  // Counts the groups of a new job that have a stored record, and those that have none.
  void looked_up(int64_t hits, int64_t misses);
  void job_ended(JobState state);
  void first_kernel(double seconds);  // notes the seconds from the start of a search to its first correct kernel
  void best_kernel(double seconds);   // notes the seconds from the start of a search to the kernel fastest at its end

  // Returns all metrics in the text format of Prometheus, version 0.0.4.
  std::string text(const CoordinatorState& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns a function that measures how long commits take; the store's writer thread calls it at points of each commit
// (StoreOptions::at_point). `metrics` must outlive it.
std::function<void(const char*)> commit_timer(Metrics* metrics);

}  // namespace wl

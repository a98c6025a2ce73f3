// Reserves memory for the graphs and plans of all unfinished jobs. An estimate is reserved before a job is planned, so
// that a graph that does not fit is refused instead of ending the process. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiler/base/status.h"

namespace wl {

// Returns an estimate in bytes of what a job's graph, its covers and its groups take while they are planned. It follows
// from the number of ops and the size of the text, as measured (docs/design/covers.md#turns-and-memory-of-planning).
int64_t plan_bytes(const std::string& graph);

// Returns two thirds, in bytes, of what this process may have: the machine's memory, or the limit of its control group
// (memory.max) or of its address space (ulimit -v), whichever is least.
int64_t default_plan_memory();

class PlanMemory {
 public:
  // `limit`: bytes in all, of which each named caller may have three quarters; 0: no limit.
  explicit PlanMemory(int64_t limit) : limit_(limit) {}

  // A reservation, which ends when the object is destroyed.
  class Held;
  // Reserves memory for a caller ("": unknown). ResourceExhausted: less than `bytes` is left for all callers or for
  // this caller, or `bytes` is above the limit itself; the message says what to do.
  absl::StatusOr<std::unique_ptr<Held>> take(const std::string& caller, int64_t bytes);
  // Keeps a reservation until release_if() finds that the job is done.
  void keep(int64_t job_id, std::unique_ptr<Held> held);
  // Reserves and keeps memory for a job from before a restart, whether it fits or not.
  void keep_anyway(int64_t job_id, int64_t bytes);
  void release_if(const std::function<bool(int64_t job_id)>& is_done);
  int64_t held() const;

 private:
  void give(const std::string& caller, int64_t bytes);

  const int64_t limit_;
  mutable std::mutex mutex_;  // guards the members declared below
  int64_t held_ = 0;
  std::map<std::string, int64_t> of_caller_;
  std::map<int64_t, std::unique_ptr<Held>> of_job_;
};

class PlanMemory::Held {
 public:
  Held(PlanMemory* of, std::string caller, int64_t bytes) : of_(of), caller_(std::move(caller)), bytes_(bytes) {}
  ~Held() { of_->give(caller_, bytes_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  PlanMemory* const of_;
  const std::string caller_;
  const int64_t bytes_;
};

}  // namespace wl

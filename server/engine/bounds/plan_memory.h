// Memory for graphs and what is planned of them, over all jobs that are not done: taken by an estimate before anything
// is made, so that what does not fit is refused and ends nothing. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiler/base/status.h"

namespace wl {

// What the graph of a job, its covers and its groups may take while they are planned, in bytes: by its operations and
// its text, as measured (docs/design/covers.md#turns-and-memory-of-planning).
int64_t plan_bytes(const std::string& graph);

// Two thirds of what this process may have at most: of the memory of the machine, of its control group (memory.max) or
// of its address space (ulimit -v), whichever is least.
int64_t default_plan_memory();

class PlanMemory {
 public:
  // `limit`: in all, in bytes; three quarters of it for each caller who has a name. 0: no limit.
  explicit PlanMemory(int64_t limit) : limit_(limit) {}

  // Memory that is given back when this is destroyed.
  class Held;
  // ResourceExhausted: less is left, or less than so much is set aside in all; and what to do.
  absl::StatusOr<std::unique_ptr<Held>> take(const std::string& caller, int64_t bytes);
  // Holds it until release_if() finds that the job is done.
  void keep(int64_t job_id, std::unique_ptr<Held> held);
  // For a job that is there already, whether it fits or not.
  void keep_anyway(int64_t job_id, int64_t bytes);
  void release_if(const std::function<bool(int64_t job_id)>& is_done);
  int64_t held() const;

 private:
  void give(const std::string& caller, int64_t bytes);

  const int64_t limit_;
  mutable std::mutex mutex_;  // guards the rest
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

// What clients see of the jobs that are not done: a copy that the engine's thread publishes and any thread reads or
// waits on. A job that has no view here is read from the store. No function calls another part of the engine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"

namespace wl {

class JobViews {
 public:
  // A restarted coordinator's versions are above those that its watchers saw before.
  JobViews();

  void begin(int64_t id, Job job);    // The first view of a job; keeps the one that is there already.
  void publish(int64_t id, Job job);  // Replaces the view and wakes who waits for it. Sets the version.
  void forget(int64_t id);
  std::optional<Job> find(int64_t id) const;
  // Waits until the view has changed since version `seen`; nullopt when `timeout` is over first. NotFound: there is no
  // view. Unavailable after leave().
  absl::StatusOr<std::optional<Job>> wait_change(int64_t id, uint64_t seen, std::chrono::milliseconds timeout);
  void leave();  // Ends every wait.
  // Whether a job that is not done needs one of these devices, or does not know its device yet.
  bool any_needs(const std::vector<Device>& devices) const;

 private:
  struct View {
    Job job;
  };
  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::map<int64_t, std::shared_ptr<View>> views_;
  uint64_t version_ = 0;
  bool leaving_ = false;
};

}  // namespace wl

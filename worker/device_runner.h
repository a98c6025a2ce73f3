// A runner on a device, with a problem's arguments set up and candidates loaded. It is started when needed and
// discarded after any error. On a GPU a fresh runner must first run the canary correctly. A device that fails this is
// quarantined, so that no work is lost to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "worker/compile_pool.h"
#include "worker/runner.h"

namespace wl {

// The state that outlives a batch: compilers, and a GPU's runner, whose context takes long to create.
struct ReusedState {
  std::unique_ptr<CompilePool> pool;
  Runner runner;
  std::string device;  // name of the device of the runner
};

class DeviceRunner {
 public:
  // `device`: "cpu" or the name of a GPU, "cuda:0". `state` may be null.
  DeviceRunner(std::string program, std::string device, SetupCommand setup, const std::atomic<bool>* cancel,
               ReusedState* state, std::function<void()> alive);
  ~DeviceRunner();

  // Provides a runner whose inputs are generated from `seed`. Fails with Cancelled, or with Unavailable or
  // ResourceExhausted for errors that are not the candidate's.
  absl::Status ready(uint64_t seed);
  // Loads candidate `i` into the runner unless it is loaded already.
  absl::Status load(size_t i, LoadCommand command, int64_t deadline_ns);
  // Ends the runner. After an error of any kind the next candidate needs a fresh one.
  absl::Status retire();
  Runner& runner() { return runner_; }
  bool is_gpu() const { return device_ != "cpu"; }

  std::optional<CanaryAnswer> canary;  // the latest canary of the present runner
  int64_t canary_at = 0;

 private:
  absl::Status start();
  absl::Status quarantine(const absl::Status& status) const;

  const std::string program_, device_;
  SetupCommand setup_;  // the command with which the present runner was set up
  const std::atomic<bool>* cancel_;
  ReusedState* state_;
  std::function<void()> alive_;
  Runner runner_;
  bool set_up_ = false;
  std::set<size_t> loaded_;
};

}  // namespace wl

// A runner on a device, with a problem's arguments set up and candidates loaded. It is started when needed and
// discarded after any error. On a GPU a fresh runner must first run the canary correctly. A device that fails this is
// quarantined, so that no work is lost to it.
#pragma once

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
  // `options`: of the runners to start. `state` may be null.
  DeviceRunner(Runner::Options options, SetupCommand setup, ReusedState* state);
  ~DeviceRunner();

  // Lets runners that are started from here on read a folder.
  void show(const std::string& folder) { options_.read.push_back(folder); }
  // Provides a runner whose inputs are generated from `seed`. Fails with Cancelled, or with Unavailable or
  // ResourceExhausted for errors that are not the candidate's.
  absl::Status ready(uint64_t seed);
  // Loads candidate `i` into the runner unless it is loaded already.
  absl::Status load(size_t i, LoadCommand command, int64_t deadline_ns);
  // Ends the runner. After an error of any kind the next candidate needs a fresh one.
  absl::Status retire();
  Runner& runner() { return runner_; }
  bool is_gpu() const { return options_.device != "cpu"; }

  std::optional<CanaryAnswer> canary;  // the latest canary of the present runner
  int64_t canary_at = 0;

 private:
  absl::Status start();
  absl::Status quarantine(const absl::Status& status) const;

  Runner::Options options_;
  SetupCommand setup_;  // the command with which the present runner was set up
  ReusedState* state_;
  Runner runner_;
  bool set_up_ = false;
  std::set<size_t> loaded_;
};

}  // namespace wl

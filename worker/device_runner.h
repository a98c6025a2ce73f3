// Starts and ends the runner (child process) of one device, and prepares it for a batch: sets up the arguments of the
// problem and loads candidates. The runner is started when it is needed, and ended after any error that may have
// damaged it. Where batches may share a runner, the next batch finds the arguments filled in already. A fresh runner of
// a GPU must first compute the canary correctly; if it does not, the device is quarantined (an Unavailable error), so
// that it gets no more work.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "worker/compile_pool.h"
#include "worker/kept_objects.h"
#include "worker/private_folder.h"
#include "worker/runner.h"

namespace wl {

// What later batches reuse: compiler processes, compiled objects, and a runner, whose arguments (CPU) or context (GPU)
// take long to make.
struct ReusedState {
  std::unique_ptr<CompilePool> pool;
  KeptObjects objects;
  Runner runner;
  std::string serves;                 // a text that says which batches `runner` may execute (serves_of)
  int batches = 0;                    // number of batches that `runner` has served
  std::optional<PrivateFolder> home;  // the folder with the objects of all batches that a CPU's runner serves

  // Ends a CPU's runner, whose arguments take memory. A GPU's runner stays, with its context.
  void rest();
};

class DeviceRunner {
 public:
  // `options`: how new runners are started. `state` may be null. `serves`: batches with an equal text may share a
  // runner (serves_of); if it is empty, the batch shares its runner with no other.
  DeviceRunner(Runner::Options options, SetupCommand setup, ReusedState* state, std::string serves);
  ~DeviceRunner();

  // Makes the folder of this batch, in which a CPU's runner finds its objects. Must be called once, before the other
  // functions.
  absl::StatusOr<PrivateFolder> make_folder(const std::string& work_dir);
  // Provides a runner whose inputs are generated from `seed`. Cancelled: the cancel flag is set. Unavailable or
  // ResourceExhausted: an error that is not the candidate's.
  absl::Status ready(uint64_t seed);
  // Loads candidate `i` into the runner unless it is loaded already.
  absl::Status load(size_t i, LoadCommand command, int64_t deadline_ns);
  // Ends the runner. Must be called after an error that may have damaged it.
  absl::Status retire();
  // Must be called after the batch: ends a CPU's runner unless the next batch may use it.
  absl::Status finish() { return keeps() || is_gpu() ? absl::OkStatus() : retire(); }
  Runner& runner() { return runner_; }
  // Whether candidates of earlier batches ran in the process of the present runner, and may have damaged it.
  bool may_be_damaged() const { return inherited_ && !is_gpu(); }
  bool is_gpu() const { return options_.device != "cpu"; }

  std::optional<CanaryAnswer> canary;  // the current runner's times of the canary, from the canary's latest run
  int64_t canary_at = 0;               // time of that run in ns (monotonic_ns)

 private:
  bool keeps() const { return state_ != nullptr && !serves_.empty(); }
  absl::Status start();
  absl::Status quarantine(const absl::Status& status) const;

  Runner::Options options_;
  SetupCommand setup_;  // the command with which the current runner was set up
  ReusedState* state_;
  const std::string serves_;
  Runner runner_;
  bool inherited_ = false;  // whether an earlier batch started the current runner
  int served_ = 0;          // number of batches that the current runner served before this one
  bool set_up_ = false;
  std::set<size_t> loaded_;
};

}  // namespace wl

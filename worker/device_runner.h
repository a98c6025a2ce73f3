// A runner on a device, with a problem's arguments set up and candidates loaded. It is started when needed and
// discarded after any error. Where batches may share one, the next batch finds it with its arguments as they are. On a
// GPU a fresh runner must first run the canary correctly. A device that fails this is quarantined, so that no work is
// lost to it.
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

// The state that outlives a batch: compilers, objects, and a runner, whose arguments or context take long to make.
struct ReusedState {
  std::unique_ptr<CompilePool> pool;
  KeptObjects objects;
  Runner runner;
  std::string serves;                 // what the runner serves (serves_of)
  int batches = 0;                    // that it has served
  std::optional<PrivateFolder> home;  // of a CPU's runner: where it finds the objects of all its batches

  // Ends a CPU's runner, whose arguments take memory. A GPU's keeps its context.
  void rest();
};

class DeviceRunner {
 public:
  // `options`: of the runners to start. `state` may be null. `serves`: which batches may share a runner: those that say
  // the same; empty: none.
  DeviceRunner(Runner::Options options, SetupCommand setup, ReusedState* state, std::string serves);
  ~DeviceRunner();

  // Makes the folder of this batch, in which a CPU's runner finds its objects. Call it once, before all others.
  absl::StatusOr<PrivateFolder> make_folder(const std::string& work_dir);
  // Provides a runner whose inputs are generated from `seed`. Fails with Cancelled, or with Unavailable or
  // ResourceExhausted for errors that are not the candidate's.
  absl::Status ready(uint64_t seed);
  // Loads candidate `i` into the runner unless it is loaded already.
  absl::Status load(size_t i, LoadCommand command, int64_t deadline_ns);
  // Ends the runner. After an error of any kind the next candidate needs a fresh one.
  absl::Status retire();
  // After the batch: ends a CPU's runner unless the next batch may find it.
  absl::Status finish() { return keeps() || is_gpu() ? absl::OkStatus() : retire(); }
  Runner& runner() { return runner_; }
  // Whether candidates of earlier batches ran in the process of the present runner, and may have damaged it.
  bool may_be_damaged() const { return inherited_ && !is_gpu(); }
  bool is_gpu() const { return options_.device != "cpu"; }

  std::optional<CanaryAnswer> canary;  // the latest canary of the present runner
  int64_t canary_at = 0;

 private:
  bool keeps() const { return state_ != nullptr && !serves_.empty(); }
  absl::Status start();
  absl::Status quarantine(const absl::Status& status) const;

  Runner::Options options_;
  SetupCommand setup_;  // the command with which the present runner was set up
  ReusedState* state_;
  const std::string serves_;
  Runner runner_;
  bool inherited_ = false;  // an earlier batch has left the present runner
  int served_ = 0;          // batches that the present runner has served before this one
  bool set_up_ = false;
  std::set<size_t> loaded_;
};

}  // namespace wl

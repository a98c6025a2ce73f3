// A runner on a device with a problem's arguments set up and candidates loaded: started when needed, thrown away after
// any error. On a GPU a fresh one has to run the canary right before it may do anything else: a device that does not
// is quarantined, and no work is lost to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "worker/compile_pool.h"
#include "worker/runner.h"

namespace wl {

// What lives from batch to batch: compilers, and a GPU's runner, whose context takes long to make.
struct Kept {
  std::unique_ptr<CompilePool> pool;
  Runner runner;
  std::string device;  // of the runner
};

// Whether a failed measure() means that the device, not the worker, is out of order; its name then.
std::optional<std::string> quarantined(const absl::Status& status);

class Bench {
 public:
  // `device`: "cpu" or a GPU's name, "cuda:0". `kept` may be null.
  Bench(std::string program, std::string device, SetupCommand setup, const std::atomic<bool>* cancel, Kept* kept,
        std::function<void()> alive);
  ~Bench();

  // A runner whose inputs are those of `seed`. Unavailable or ResourceExhausted: the worker's trouble, not a
  // candidate's; Cancelled.
  absl::Status ready(uint64_t seed);
  // Loads candidate `i` unless it is loaded.
  absl::Status load(size_t i, LoadCommand command, int64_t deadline_ns);
  // Ends the runner: after an error of any kind the next candidate starts in a fresh one.
  absl::Status retire();
  Runner& runner() { return runner_; }
  bool is_gpu() const { return device_ != "cpu"; }

  std::optional<CanaryAnswer> canary;  // the running runner's last one
  int64_t canary_at = 0;

 private:
  absl::Status start();
  absl::Status quarantine(const absl::Status& status) const;

  const std::string program_, device_;
  SetupCommand setup_;  // what the running runner holds
  const std::atomic<bool>* cancel_;
  Kept* kept_;
  std::function<void()> alive_;
  Runner runner_;
  bool set_up_ = false;
  std::set<size_t> loaded_;
};

}  // namespace wl

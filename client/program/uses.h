// Counts what the kernels of a program run, cheaply: a run adds one to a counter, and one run in kSampleEvery is timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/program/program.h"
#include "compiler/base/job.h"

namespace wl {

// Thread-safe: any number of executors of a program may share a meter.
class UseMeter {
 public:
  static constexpr int64_t kSampleEvery = 64;

  explicit UseMeter(const Program& program) : sampled_ns_(program.kernels.size()) {
    for (const ProgramKernel& kernel : program.kernels) keys_.push_back(kernel.key);
    launches_.resize(keys_.size());
    for (const ProgramStep& step : program.steps) ++launches_[static_cast<size_t>(step.kernel)];
  }

  // Counts a run. Returns whether the steps of the run are to be timed.
  bool begin_run() { return runs_.fetch_add(1, std::memory_order_relaxed) % kSampleEvery == 0; }
  // Adds the time in ns of a step that launches the kernel, in a run that is timed.
  void add(int kernel, int64_t ns) {
    sampled_ns_[static_cast<size_t>(kernel)].fetch_add(ns, std::memory_order_relaxed);
  }
  // Says that all steps of a timed run were added.
  void end_run() { sampled_.fetch_add(1, std::memory_order_relaxed); }

  // Returns what was run since the last call; kernels that were not run are left out. Times are those of the timed runs
  // so far, in proportion to all runs.
  std::vector<KernelUse> take() {
    const int64_t runs = runs_.load(std::memory_order_relaxed), sampled = sampled_.load(std::memory_order_relaxed);
    const int64_t since = runs - taken_.exchange(runs);
    std::vector<KernelUse> uses;
    for (size_t i = 0; i < keys_.size() && since > 0; ++i) {
      if (launches_[i] == 0) continue;
      const auto ns = static_cast<double>(sampled_ns_[i].load(std::memory_order_relaxed));
      const double mean = sampled > 0 ? ns / static_cast<double>(sampled) : 0;
      uses.push_back({keys_[i], since * launches_[i], static_cast<int64_t>(mean * static_cast<double>(since))});
    }
    return uses;
  }

 private:
  std::vector<std::string> keys_;
  std::vector<int64_t> launches_;                 // for each kernel, the number of its launches in a run
  std::vector<std::atomic<int64_t>> sampled_ns_;  // for each kernel, the time of its launches in all timed runs
  std::atomic<int64_t> runs_ = 0, sampled_ = 0, taken_ = 0;
};

}  // namespace wl

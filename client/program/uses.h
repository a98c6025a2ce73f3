// Counts what the kernels of a program run, cheaply: a run adds one to a counter, and one run in kSampleEvery is timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "client/program/program.h"
#include "compiler/base/job.h"

namespace wl {

// Any number of executors of a program may share a meter and count at the same time; take() is called by one thread at
// a time.
class UseMeter {
 public:
  static constexpr int64_t kSampleEvery = 64;

  explicit UseMeter(const Program& program) : sampled_ns_(program.kernels.size()), taken_ns_(program.kernels.size()) {
    for (const ProgramKernel& kernel : program.kernels) keys_.push_back(kernel.key);
    launches_.resize(keys_.size());
    for (const ProgramStep& step : program.steps) ++launches_[static_cast<size_t>(step.kernel)];
  }

  // Counts a run. Returns whether the steps of the run are to be timed. The first run is not: memory is touched and
  // threads wake for the first time.
  bool begin_run() { return runs_.fetch_add(1, std::memory_order_relaxed) % kSampleEvery == 1; }
  // Adds a run that was timed: for each kernel, the time in ns of all its launches.
  void add(const std::vector<int64_t>& ns) {
    for (size_t i = 0; i < ns.size(); ++i) sampled_ns_[i].fetch_add(ns[i], std::memory_order_relaxed);
    sampled_.fetch_add(1, std::memory_order_relaxed);
  }

  // Returns what was run since the last call; kernels that were not run are left out. Times are estimated from the runs
  // that were timed since then or, if none was, from those before; 0: none was timed yet.
  std::vector<KernelUse> take() {
    const int64_t runs = runs_.load(std::memory_order_relaxed), sampled = sampled_.load(std::memory_order_relaxed);
    const int64_t since = runs - taken_runs_;
    const bool has_new = sampled > taken_samples_;
    const int64_t samples = has_new ? sampled - taken_samples_ : sampled;
    std::vector<KernelUse> uses;
    for (size_t i = 0; i < keys_.size(); ++i) {
      const int64_t all = sampled_ns_[i].load(std::memory_order_relaxed);
      const auto ns = static_cast<double>(has_new ? all - taken_ns_[i] : all);
      if (has_new) taken_ns_[i] = all;
      if (since == 0 || launches_[i] == 0) continue;
      const double mean = samples > 0 ? ns / static_cast<double>(samples) : 0;
      uses.push_back({keys_[i], since * launches_[i], static_cast<int64_t>(mean * static_cast<double>(since))});
    }
    taken_runs_ = runs;
    taken_samples_ = sampled;
    return uses;
  }

 private:
  std::vector<std::string> keys_;
  std::vector<int64_t> launches_;                 // for each kernel, the number of its launches in a run
  std::vector<std::atomic<int64_t>> sampled_ns_;  // for each kernel, the time of its launches in all timed runs
  std::vector<int64_t> taken_ns_;                 // what take() saw of sampled_ns_, and of the two counters
  int64_t taken_runs_ = 0, taken_samples_ = 0;
  std::atomic<int64_t> sampled_ = 0;
  alignas(64) std::atomic<int64_t> runs_ = 0;  // in a cache line of its own, since every run writes it
};

}  // namespace wl

// GPU kernels to machine code by processes that live on from batch to batch: a compiler that crashes or hangs costs its
// process, and two libraries of which one serialises itself still use two cores. Several kernels share a translation
// unit, which costs half of compiling each; when a unit fails its members are compiled one by one. What comes out is
// judged before anything runs (drivers/code_judge.h) and kept once for equal contents.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {

class CompilePool {
 public:
  // `runner`: the warploom-runner program. Processes start when first needed and end with the pool.
  CompilePool(std::string runner, int jobs);
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // One result per candidate, in their order; a candidate that is judged not worth running is kRejected and has an
  // object all the same. `options.jobs` is the pool's. One call at a time. Unavailable: no process can be started.
  absl::StatusOr<std::vector<Compiled>> compile(const std::vector<Candidate>& candidates, const CodeLimits& limits,
                                                const CompileOptions& options);

 private:
  struct Unit {
    std::vector<size_t> members;
  };
  struct Call;
  void work();
  void finish(Call& call, const Unit& unit, class Runner& runner);

  const std::string program_;
  const int jobs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Call* call_ = nullptr;  // the one under way
  bool closing_ = false;
  std::atomic<bool> cancel_ = false;  // of the call under way, and at the end
  std::vector<std::thread> threads_;
};

}  // namespace wl

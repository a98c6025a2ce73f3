// Compiles GPU kernels in child processes (runners without a device), which are kept from batch to batch. A compiler
// that crashes or hangs costs only its process. A library that compiles one source at a time still uses all cores,
// since every process has its own copy. Several kernels share a translation unit, which nearly halves the cost of each;
// if a unit fails, its members are compiled one by one. The code is judged before anything runs
// (drivers/gpu/code_judge.h). Objects with equal bytes are stored once.
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
  // `runner`: path of the warploom-runner program. At most `jobs` processes start, when they are first needed, and end
  // with the pool.
  CompilePool(std::string runner, int jobs, Sandbox sandbox = Sandbox::kNone);
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // Returns one result per candidate, in order. A candidate whose code is not worth running is kRejected but has an
  // object. options.jobs is ignored. Only one call at a time. Unavailable: no process can be started, or a file cannot
  // be written.
  absl::StatusOr<std::vector<Compiled>> compile(const std::vector<Candidate>& candidates, const CodeLimits& limits,
                                                const CompileOptions& options);

 private:
  struct Unit {
    std::vector<size_t> members;
  };
  struct Call;
  void work();
  absl::Status provide(class Runner& runner);
  void finish(Call& call, const Unit& unit, class Runner& runner);

  const std::string program_;
  const int jobs_;
  const Sandbox sandbox_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Call* call_ = nullptr;  // the current call of compile(); null between calls
  bool closing_ = false;
  std::atomic<bool> cancel_ = false;  // set if the caller of compile() cancels, and by the destructor
  std::vector<std::thread> threads_;
};

}  // namespace wl

// Turns a Batch into Trials: compiles every candidate, checks it against the oracle's samples, and times it if it
// passes. Only child processes (runners) touch a device. A candidate that crashes or hangs ends its runner and becomes
// one failed Trial with the kind of its failure; the next candidate gets a fresh runner. Compiling and timing never
// overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"
#include "worker/drivers/bubblewrap.h"

namespace wl {

struct ReusedState;
struct Compiled;

// Describes the CPU of this machine and its compilers. It starts each compiler to ask for its version, about 10 ms
// each, so call it once. `sandbox` becomes a detail of the device, for reports.
Device describe_device(Sandbox sandbox = Sandbox::kNone);

// Checks whether compilers and candidates can run in a sandbox that bubblewrap makes. FailedPrecondition says what is
// missing and what to do. Takes about 20 ms; longer if a compiler is outside /usr, which is then tried on a small text
// in `work_dir`.
absl::Status sandbox_serves(const std::string& work_dir);

// The GPUs that the drivers of this machine show, and the reasons for missing ones. A child process with a deadline
// asks the drivers, since a driver may hang. `runner` is as in MeasureOptions.
struct Gpus {
  struct Gpu {
    std::string name;  // name of the device, as in MeasureOptions::gpus, e.g. "cuda:0"
    Device device;
  };
  std::vector<Gpu> found;
  std::vector<std::string> missing;  // for each missing driver, a message, e.g. "CUDA: no libcuda.so.1 here; ..."
};
Gpus find_gpus(const std::string& runner, Sandbox sandbox = Sandbox::kNone);

// The progress of a batch: `done` of `total` candidates have finished a phase. `counter` increases only when the runner
// or the compilers report progress. A renewal of the lease sends it as proof that they are not stuck.
struct Progress {
  std::string phase;  // name of the phase that the batch is in: "compile", "check" or "measure"
  int done = 0;
  int total = 0;
  int64_t counter = 0;
};

struct MeasureOptions {
  std::string runner;    // path of the warploom-runner program
  std::string work_dir;  // path of an existing folder, in which a private folder is made and removed again
  int compile_jobs = 0;  // number of compilers that run at a time; 0: one per usable hardware thread
  int64_t compile_deadline_ns = 60'000'000'000;  // time limit of one compiler process in ns
  Sandbox sandbox = Sandbox::kNone;  // sandbox of compilers and candidates; kBubblewrap needs sandbox_works()
  // The GPUs of this machine. Candidates use the first one of the batch's target, or else the first of its family.
  std::vector<Gpus::Gpu> gpus;
  const std::vector<Compiled>* compiled = nullptr;  // results of compiling, made earlier; if set, nothing is compiled
  ReusedState* state = nullptr;  // what batches reuse (worker/device_runner.h), or null; must outlive the call
  bool fake = false;             // whether samples are hashes of the source text, in place of measured times
  const std::atomic<bool>* cancel = nullptr;      // another thread may set this flag; measuring stops within 0.1 s
  std::function<void(const Progress&)> progress;  // is called on the measuring thread after each step
  // Called on the measuring thread with a log line of a runner, and the trace id of the job that the line is about.
  std::function<void(const std::string& text, const std::string& trace)> says;
};

struct Measured {
  // The trials in the order of the batch's candidates. After a cancel, only the trials that were finished before it.
  std::vector<Trial> trials;
  std::map<int64_t, std::string>
      objects;  // compiled kernels of correct trials, by number; none unless batch.keep_objects
  bool cancelled = false;
};

// Fails only if the worker itself is broken: no runner, no disk, no memory for the buffers, or a GPU that has to be
// quarantined (worker/device_runner.h). No candidate is at fault then, and the batch should be tried elsewhere.
// InvalidArgument: a check samples an element that does not exist. The calling thread must live as long as
// options.state keeps a runner, which the system ends together with that thread. Calls for different GPUs may run at
// the same time, but none beside a call for the CPU.
absl::StatusOr<Measured> measure(const Batch& batch, const MeasureOptions& options);

}  // namespace wl

// Turns a Batch into Trials: compiles every candidate, checks it against the oracle's samples, and times it if it
// passes. This is the only place that uses a device, and always through a child process. A candidate that crashes or
// hangs costs that child and is one failed Trial with its class; the next candidate gets a fresh child. Compiling and
// timing never overlap.
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

// Describes this machine with its compilers. Asks each compiler for its version, which takes some 10 ms, so call it
// once. Where its candidates are to run is a detail of it, for reports.
Device describe_device(Sandbox sandbox = Sandbox::kNone);

// Whether compilers and candidates can run in a bubblewrap: FailedPrecondition says what is missing, and what to do.
// Takes some 20 ms, and longer where a compiler is not the system's, which is then tried on a text in a folder in
// `work_dir`.
absl::Status sandbox_serves(const std::string& work_dir);

// The GPUs that a machine's drivers show, and why there are none. Found by a child process with a deadline, since a
// driver may hang. `runner` is as in MeasureOptions.
struct Gpus {
  struct Gpu {
    std::string name;  // name of the device, as in MeasureOptions::gpus, e.g. "cuda:0"
    Device device;
  };
  std::vector<Gpu> found;
  std::vector<std::string> missing;  // messages about missing drivers, e.g. "CUDA: no libcuda.so.1 here; ..."
};
Gpus find_gpus(const std::string& runner, Sandbox sandbox = Sandbox::kNone);

// What the worker is doing: `done` of `total` candidates have finished a phase. The counter increases with what the
// runner and the compilers report and with nothing else, so a lease that is renewed with it proves that they go on.
struct Progress {
  std::string phase;  // name of the phase: "compile", "check" or "measure"
  int done = 0;
  int total = 0;
  int64_t counter = 0;
};

struct MeasureOptions {
  std::string runner;                            // path of the warploom-runner program
  std::string work_dir;                          // an existing folder, in which a private one is made and removed again
  int compile_jobs = 0;                          // number of concurrent compilers; 0 = one per usable hardware thread
  int64_t compile_deadline_ns = 60'000'000'000;  // time limit of one compiler process
  Sandbox sandbox = Sandbox::kNone;              // where compilers and candidates run; bubblewrap needs sandbox_works()
  std::vector<Gpus::Gpu> gpus;  // the GPUs that candidates may run on; the first one of the right target is used
  const std::vector<Compiled>* compiled = nullptr;  // objects that were compiled elsewhere, one per candidate; nothing
                                                    // is compiled then
  ReusedState* state = nullptr;  // worker/device_runner.h; must outlive the call. Null: no state is kept
                                 // between batches
  bool fake = false;  // samples are a hash of the source text instead of times, the same on every machine and in every
                      // run
  const std::atomic<bool>* cancel = nullptr;      // another thread may set it; measuring stops within a tenth of a
                                                  // second
  std::function<void(const Progress&)> progress;  // called on the measuring thread whenever something was done
  // Called on the measuring thread with what a runner has to say: a line, and the trace id that it is about.
  std::function<void(const std::string& text, const std::string& trace)> says;
};

struct Measured {
  std::vector<Trial> trials;               // in the order of the batch; after a cancel, only the candidates judged
                                           // before it
  std::map<int64_t, std::string> objects;  // shared objects by trial number, filled when batch.keep_objects
  bool cancelled = false;
};

// Fails only when the worker itself is broken: no runner, no disk, no memory for the buffers, or a GPU that has to be
// quarantined (worker/device_runner.h). No candidate is at fault then, and the batch should be tried elsewhere. Call it
// from a thread that lives until it returns; one call at a time per machine.
absl::StatusOr<Measured> measure(const Batch& batch, const MeasureOptions& options);

}  // namespace wl

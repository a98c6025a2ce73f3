// Turns a Batch into Trials: compiles every candidate, checks each against the oracle's samples, times those that pass.
// The one place that touches a device, always through a child process: whatever a candidate does costs that child, is
// one failed Trial with its class, and the next candidate goes on in a fresh one. Compiling and timing never overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

struct Kept;
struct Compiled;

// The machine this process runs on, compilers included (asks each for its version: some 10 ms, so ask once).
Device describe_device();

// The GPUs that a machine's drivers show, asked in a child process under a deadline, since a driver may hang; and why
// there are none. `runner` as in MeasureOptions.
struct Gpus {
  struct Gpu {
    std::string name;  // "cuda:0", as MeasureOptions::gpus has it
    Device device;
  };
  std::vector<Gpu> found;
  std::vector<std::string> missing;  // "CUDA: no libcuda.so.1 here; ..."
};
Gpus find_gpus(const std::string& runner);

// What the worker is doing: `done` of `total` candidates of a phase are through. The counter moves whenever anything
// happened, so a lease renewed with it proves progress of this very candidate.
struct Progress {
  std::string phase;  // "compile", "check", "measure"
  int done = 0;
  int total = 0;
  int64_t counter = 0;
};

struct MeasureOptions {
  std::string runner;    // path of the warploom-runner program
  std::string work_dir;  // existing folder; a private one is made in it and removed again
  int compile_jobs = 0;  // compilers at a time; 0 = as many as there are usable hardware threads
  int64_t compile_deadline_ns = 60'000'000'000;  // of one compiler process
  std::vector<Gpus::Gpu> gpus;  // what candidates for GPUs may run on: the first whose target they are for
  const std::vector<Compiled>* compiled = nullptr;  // made elsewhere, one per candidate: nothing is compiled
  Kept* kept = nullptr;                             // worker/bench.h; outlives the call. Null: nothing lives on
  bool fake = false;  // samples are a hash of the source text instead of times: the same on every machine and run
  const std::atomic<bool>* cancel = nullptr;      // may be set by another thread; stops within a tenth of a second
  std::function<void(const Progress&)> progress;  // called on the measuring thread, at least 5 times a second
};

struct Measured {
  std::vector<Trial> trials;               // in the order of the batch; only those judged before a cancel
  std::map<int64_t, std::string> objects;  // trial number -> shared object, when batch.keep_objects
  bool cancelled = false;
};

// Fails only when the worker itself is broken (no runner, no disk, no memory for the buffers, a GPU that has to be
// quarantined, worker/bench.h): no fault of a candidate, to be tried elsewhere. Call from a thread that lives until it
// returns; one call at a time per machine.
absl::StatusOr<Measured> measure(const Batch& batch, const MeasureOptions& options);

}  // namespace wl

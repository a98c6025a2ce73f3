// The CPU as a device: its description, and the compilation of candidates to shared objects. All differences between
// CPUs and between compilers are in the rows of cpu_targets() and cpu_compilers() (tables.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"
#include "worker/drivers/bubblewrap.h"

namespace wl {

// Describes this machine: the most capable target that it can run, its caches, the hardware threads that this process
// may use, the compilers on PATH.
Device describe_cpu();

// Returns the library that candidates may call on this machine, with its version: "onednn=2.6.3"; empty: no library is
// usable, and `why`, unless null, is set to the reason. Loads the library into this process.
std::string usable_library(std::string* why = nullptr);

// Whether this machine can run code compiled for `target`, e.g. "cpu:avx2".
bool cpu_runs(std::string_view target);

// Returns the size of the largest cache a thread can reach; 32 MiB when the system does not say.
int64_t last_level_cache_bytes();

// The result of compiling one candidate.
struct Compiled {
  // kCorrect means here that the candidate compiled and, for a GPU, that its code is worth running.
  Outcome outcome = Outcome::kRejected;
  std::string message;  // first lines of the compiler's output for this candidate
  std::string object;   // path of the shared object; all candidates of a translation unit have the same one
  double seconds = 0;   // this candidate's share of the compiler's wall time, in seconds
  CodeFacts code = {};  // facts about the candidate's code; GPU kernels only
};

struct CompileOptions {
  std::string folder;                    // path of an existing folder for objects and sources
  int jobs = 2;                          // number of compilers that run at a time
  int unit = 8;                          // largest number of candidates in one translation unit
  int64_t deadline_ns = 60'000'000'000;  // time limit of one compiler process in ns
  Sandbox sandbox = Sandbox::kNone;      // the sandbox in which the compilers run
  // when it becomes true, compiling stops; unfinished candidates stay kRejected
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int done)> progress;  // called on this thread with the number of finished candidates
};

// Compiles every candidate and returns the results in the same order. Candidates with the same compiler, target and
// prelude share translation units. If a unit fails, its candidates are compiled again one by one, so that a bad
// candidate costs one compile error. Equal sources are compiled once. An object's bytes depend only on the texts of its
// translation unit, the compiler and its linker. With one candidate per unit (options.unit = 1), all machines with the
// same compiler_versions therefore make the same object of a source. Unavailable: a file cannot be written or a process
// cannot be started.
absl::StatusOr<std::vector<Compiled>> compile_cpu(const std::vector<Candidate>& candidates,
                                                  const CompileOptions& options);

}  // namespace wl

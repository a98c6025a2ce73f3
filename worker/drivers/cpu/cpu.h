// The CPU as a device: its description, and the compilation of candidates to shared objects. All differences between
// CPUs and compilers are in the rows of kCpuTargets and kCpuCompilers.
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

// Describes this machine: the best row it can run, its caches, the threads this process may use, the compilers on PATH.
Device describe_cpu();

// The library that candidates may call on this machine, with its version: "onednn=2.6.3"; empty: there is none that
// they can use. `why`, unless null, is set to what was found wrong.
std::string usable_library(std::string* why = nullptr);

// Whether this machine can run code compiled for `target`, e.g. "cpu:avx2".
bool cpu_runs(std::string_view target);

// Returns the size of the largest cache a thread can reach; 32 MiB when the system does not say.
int64_t last_level_cache_bytes();

// The result of compiling one candidate.
struct Compiled {
  Outcome outcome = Outcome::kRejected;  // kCorrect if `object` exists
  std::string message;                   // first lines of the compiler's output
  std::string object;                    // path of the object, which the candidates of a unit share
  double seconds = 0;                    // this candidate's share of the compiler's wall time
  CodeFacts code = {};                   // facts about the code; GPU kernels only
};

struct CompileOptions {
  std::string folder;                         // an existing folder for objects and sources
  int jobs = 2;                               // number of compilers that run concurrently
  int unit = 8;                               // limit of candidates in one translation unit
  int64_t deadline_ns = 60'000'000'000;       // time limit of one compiler process
  Sandbox sandbox = Sandbox::kNone;           // where the compilers run
  const std::atomic<bool>* cancel = nullptr;  // stops early; candidates that were not compiled stay kRejected
  std::function<void(int done)> progress;     // called on this thread as candidates are finished
};

// Compiles every candidate; results are in the same order. Candidates with the same compiler, target and prelude share
// translation units. A unit that fails is compiled again candidate by candidate, so that one bad candidate is one
// compile error. Equal sources are compiled once. The object's bytes depend only on the texts of the unit, on the
// compiler and on its linker: with `unit` 1 every machine with the same compiler_versions makes the same object of a
// source. Fails only when files cannot be written or processes cannot be started.
absl::StatusOr<std::vector<Compiled>> compile_cpu(const std::vector<Candidate>& candidates,
                                                  const CompileOptions& options);

}  // namespace wl

// The CPU as a device: what it is, and how candidates become shared objects for it. The rows of kCpuTargets and
// kCpuCompilers are all that differs between CPUs and compilers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// This machine: the best row it can run, its caches, the threads this process may use, the compilers on PATH.
Device describe_cpu();

// Whether this machine can run code compiled for `target`, e.g. "cpu:avx2".
bool cpu_runs(std::string_view target);

// Size of the largest cache a thread can reach; 32 MiB when the system does not say.
int64_t last_level_cache_bytes();

// What happened to one candidate of a compilation.
struct Compiled {
  Outcome outcome = Outcome::kRejected;  // kCorrect: `object` is there
  std::string message;                   // first lines of what the compiler said
  std::string object;                    // path of the object; shared by candidates of one unit
  double seconds = 0;                    // this candidate's share of the compiler's wall time
  CodeFacts code = {};                   // GPUs
};

struct CompileOptions {
  std::string folder;                         // existing; objects and sources are written here
  int jobs = 2;                               // compilers at a time
  int unit = 8;                               // most candidates in one translation unit
  int64_t deadline_ns = 60'000'000'000;       // of one compiler process
  const std::atomic<bool>* cancel = nullptr;  // stops early; what was not compiled stays kRejected
  std::function<void(int done)> progress;     // called on this thread as candidates are through
};

// Compiles every candidate; results in the same order. Candidates of one compiler, target and prelude share translation
// units; a unit that fails is compiled again candidate by candidate, so one bad candidate is one compile error. Equal
// sources are compiled once. The object's bytes depend on the unit's texts and the compiler alone. Fails only when
// files cannot be written or processes cannot be started.
absl::StatusOr<std::vector<Compiled>> compile_cpu(const std::vector<Candidate>& candidates,
                                                  const CompileOptions& options);

}  // namespace wl

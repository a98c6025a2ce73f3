// Plain data that travels between coordinator, worker, runner, store and client. No behaviour: `proto/wire` converts
// it to messages, `server/store` to rows. Times are nanoseconds unless the name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"
#include "compiler/base/fill.h"

namespace wl {

// One argument of a kernel, in call order: all inputs, then all outputs. Row-major, contiguous.
struct BufferSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool output = false;
  Fill fill;            // inputs: how a generated run fills it
  uint64_t stream = 0;  // inputs: generator stream
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const BufferSpec&) const = default;
};

// A printed kernel. CPU ABI: `extern "C" void ENTRY(long block, void* const* args, char* scratch)` is called once for
// every block in [0, grid), by `threads` threads that each own a contiguous range of blocks; scratch is private to the
// thread, 4096-byte aligned, `scratch_bytes` long and not zeroed; args are 64-byte aligned and never alias. A kernel of
// several `passes` is called for every block in [0, passes * grid): pass after pass, each once the one before has ended
// on all threads. Behind the arguments it then gets one more pointer: its workspace, `work_bytes` that all blocks see,
// 64-byte aligned, not zeroed, and kept from its first pass to its last. But for its first kCounterBytes: they are zero
// when a kernel begins and when it has ended, so that blocks can count who comes last.
inline constexpr int64_t kCounterBytes = 4096;

struct Source {
  std::string target;    // row of kTargets, e.g. "cpu:avx512"
  std::string compiler;  // "gcc" or "clang"
  std::string prelude;   // text that precedes `text` in the translation unit; equal for all candidates of a compiler
  std::string text;      // the kernel; defines nothing but symbols that start with `entry`
  std::string entry;     // unique: derived from the hash of the text
  int64_t grid = 1;
  int threads = 1;
  int64_t scratch_bytes = 0;
  // GPU ABI: the launch of ENTRY with pointers to the arguments, `grid` blocks of `threads` lanes and `scratch_bytes`
  // of dynamic shared memory. What the text promises of its widest accesses of a lane to device memory, in bytes; 0:
  // none.
  int load_bytes = 0, store_bytes = 0;
  // A GPU kernel of several passes is launched once for each, with the workspace and the number of the pass, an int,
  // behind the arguments.
  int passes = 1;
  int64_t work_bytes = 0;
  bool operator==(const Source&) const = default;
};

// What a unit (SM, CU) of a GPU offers, as far as a kernel's code is judged by it. Registers are of 32 bits; a code of
// zero `wave` is not judged.
struct CodeLimits {
  int wave = 0;
  int block_threads = 0, unit_threads = 0, unit_blocks = 0;
  int lane_registers = 0, unit_registers = 0;
  int64_t block_shared = 0, unit_shared = 0;
  bool operator==(const CodeLimits&) const = default;
};

// What a compiler made of a GPU kernel, known before anything runs; compiler/base/code.h has its text form. registers
// 0: nothing is known.
struct CodeFacts {
  int registers = 0;                              // of a lane
  int64_t spill_bytes = 0, stack_bytes = 0;       // of a lane, in device memory
  int64_t static_shared = 0, dynamic_shared = 0;  // bytes of a block
  int widest_load = 0, narrowest_load = 0;        // bytes of one access of a lane to device memory; 0: none
  int widest_store = 0, narrowest_store = 0;      // (or not known)
  bool compare_and_swap = false;                  // an atomic became a loop
  double occupancy = 0;                           // share of a unit's threads that can be resident
  bool operator==(const CodeFacts&) const = default;
};

// What the runner needs to know about a group to run any candidate of it, and the worker to judge the outcome.
struct Problem {
  std::string key;                  // problem key of the group (SHA-256, hex)
  std::vector<BufferSpec> buffers;  // call order of every candidate
  bool operator==(const Problem&) const = default;
};

// Expected values at sampled output elements, from the oracle. Never enters the runner: the worker asks the runner for
// the elements after the run and compares.
struct Check {
  uint64_t seed = 0;
  struct Sample {
    int buffer = 0;  // index in Problem::buffers
    int64_t index = 0;
    double expected = 0;
    double bound = 0;  // |got - expected| <= bound passes; NaN expects NaN, infinities must match
    bool operator==(const Sample&) const = default;
  };
  std::vector<Sample> samples;
  bool operator==(const Check&) const = default;
};

// How to measure; part of the key. `cold`: buffers are rotated so that no run finds its data in cache.
struct Recipe {
  bool cold = false;
  int min_repeats = 5;
  int max_repeats = 200;
  int64_t budget_ns = 150'000'000;       // per candidate, measuring
  int64_t deadline_ns = 20'000'000'000;  // per candidate, everything; then the runner is shot
  double hopeless_factor = 2.0;          // stop early when two samples both exceed this times best_ns
  int64_t best_ns = 0;                   // the best known when the lease was made (undisturbed_ns); 0 = none
  bool interleave = false;               // final: rounds over all candidates instead of one after the other
  int threads = 0;                       // 0 = as the Source says
  bool operator==(const Recipe&) const = default;
};

enum class Outcome : uint8_t { kCorrect, kCompileError, kWrongResult, kTimeout, kRuntimeError, kRejected };
inline constexpr const char* kOutcomeNames[] = {"correct", "compile_error", "wrong_result",
                                                "timeout", "runtime_error", "rejected"};

// One thing to compile, check and time.
struct Candidate {
  int64_t trial = 0;  // number of the trial in its group, from 0
  std::string plan;   // plan text; travels for logs and provenance
  Source source;
  bool operator==(const Candidate&) const = default;
};

// What came back.
struct Trial {
  int64_t trial = 0;
  std::string plan;
  Outcome outcome = Outcome::kRejected;
  std::vector<int64_t> samples_ns;  // raw; one per timed run; for fast kernels each is a mean over an inner loop
  bool hopeless = false;            // correct, but stopped early: fewer samples than asked
  double max_error = 0;             // of the sample with the largest error/bound
  double bound = 0;                 // of that same sample
  std::string message;              // first lines of the compiler's or the fault's message
  double compile_s = 0, check_s = 0, measure_s = 0;
  std::string object_sha256;             // compiled object, empty when not kept
  CodeFacts code;                        // of GPU kernels, whatever the outcome
  int clock_mhz = 0;                     // of the GPU's units while it was timed; 0: not known
  std::vector<int64_t> clocks_mhz = {};  // the same right after each sample; empty: not known
  bool operator==(const Trial&) const = default;
};

// The unit a worker leases: candidates of one group that share problem, check and recipe.
struct Batch {
  std::string id;     // opaque; the same after a restart of the coordinator
  int64_t phase = 0;  // 0: a round of the search; n: the n-th promotion
  bool promotion() const { return phase > 0; }
  Problem problem;
  std::vector<Check> checks;  // checks[0] before timing; all of them in a promotion
  Recipe recipe;
  std::vector<Candidate> candidates;
  bool keep_objects = false;  // upload compiled objects with the report
  CodeLimits limits;          // of the target; GPUs only
};

// A machine as its worker describes it. The fingerprint is part of the problem key.
struct Device {
  std::string target;  // best row of kTargets it can run, e.g. "cpu:avx512"
  std::string name;    // "AMD EPYC ..."
  int threads = 1;     // hardware threads it may use
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  std::vector<std::string> compilers;  // usable ones: "gcc", "clang"
  std::string compiler_versions;       // environment part of a record's identity
  // GPUs: `threads` counts units (SMs, CUs), l1 is a unit's shared memory, l3 is 0. `details` is provenance and no part
  // of the identity: memory, driver, clocks, MIG, power limit, as "name=value" separated by spaces.
  std::string details = {};
  std::string fingerprint() const;  // target|name|threads|caches
  bool operator==(const Device&) const = default;
};

// What kernels are compared by, wherever a program chooses among them: the least sample, for other load on the machine
// only ever adds time (docs/decisions/0020-least-samples.md). 0 when empty.
double undisturbed_ns(const std::vector<int64_t>& samples_ns);
// What people are told of a kernel's time: in reports, bundles and listings. 0 when empty.
double median_of(std::vector<int64_t> samples);

}  // namespace wl

// Plain data exchanged by coordinator, worker, runner, store and client. It has no behaviour: `proto/wire` converts it
// to messages, `server/store` to rows. Times are nanoseconds unless the name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/dtype.h"
#include "compiler/base/fill.h"

namespace wl {

// One argument of a kernel. Arguments are in call order: all inputs, then all outputs. Each is row-major and
// contiguous.
struct BufferSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool output = false;
  Fill fill;            // how the values of a generated input are drawn
  uint64_t stream = 0;  // generator stream of a generated input
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const BufferSpec&) const = default;
};

// A printed kernel.
//
// CPU ABI: `extern "C" void ENTRY(long block, void* const* args, char* scratch)` is called once for every block in [0,
// grid), by at most `threads` threads and in any order. `scratch` is private to the thread, 4096-byte
// aligned, `scratch_bytes` long and not zeroed. `args` are 64-byte aligned and never alias. A kernel of several
// `passes` is called for every block in [0, passes * grid), one pass after the other; a pass begins when the one before
// it has ended on all threads. After its arguments such a kernel gets one more pointer, its workspace: `work_bytes`
// that all blocks share, 64-byte aligned, kept from the first pass to the last, and not zeroed except for the first
// kCounterBytes. Those are zero when a kernel begins and must be zero when it ends; blocks use them to find out which
// of them finishes last.
//
// A kernel that takes elements at places which data say may have `extern "C" const long ENTRY_outside`: where in the
// scratch two i64 lie in which it leaves word of an index outside its axis, the axis' extent and the index. It reads
// the nearest element then. Who runs it sets the extent to 0 before, and finds there whether all went well.
inline constexpr int64_t kCounterBytes = 4096;
inline constexpr int64_t kOutsideBytes = 64;

struct Source {
  std::string target;    // name of a row of kTargets, e.g. "cpu:avx512"
  std::string compiler;  // name of the compiler: "gcc" or "clang"
  std::string prelude;   // text that precedes `text` in the translation unit; the same for all candidates of a compiler
  std::string text;      // the kernel; every symbol it defines starts with `entry`
  std::string entry;     // unique, since it is derived from the hash of the text
  int64_t grid = 1;
  int threads = 1;
  int64_t scratch_bytes = 0;
  // GPU ABI: ENTRY is launched with pointers to the arguments, `grid` blocks of `threads` lanes and `scratch_bytes` of
  // dynamic shared memory. load_bytes and store_bytes are the widest accesses of a lane to device memory that the text
  // promises; 0: no promise.
  int load_bytes = 0, store_bytes = 0;
  // A GPU kernel of several passes is launched once for each. After the arguments it gets the workspace and the number
  // of the pass, an int.
  int passes = 1;
  int64_t work_bytes = 0;
  // A library (compiler/base/libraries.h) that the kernel opens when it is loaded; empty: none. On a CPU such a kernel
  // has one more function, `extern "C" const char* ENTRY_prepare()`, which must be called once before the first launch,
  // and returns what is wrong, or null. On a GPU its text, and its object, is a MatmulCall (compiler/base/matmul.h).
  std::string library = {};
  bool operator==(const Source&) const = default;
};

// What a unit (SM or CU) of a GPU offers, as far as it limits a kernel's code. Registers are of 32 bits. Code is not
// judged where `wave` is 0.
struct CodeLimits {
  int wave = 0;
  int block_threads = 0, unit_threads = 0, unit_blocks = 0;
  int lane_registers = 0, unit_registers = 0;
  int64_t block_shared = 0, unit_shared = 0;
  bool operator==(const CodeLimits&) const = default;
};

// What a compiler made of a GPU kernel, known before anything runs. compiler/base/code.h has its text form. All fields
// are unknown when `registers` is 0.
struct CodeFacts {
  int registers = 0;                              // registers per lane
  int64_t spill_bytes = 0, stack_bytes = 0;       // bytes per lane of device memory for spills and the stack
  int64_t static_shared = 0, dynamic_shared = 0;  // bytes of shared memory per block
  int widest_load = 0, narrowest_load = 0;        // bytes of one access of a lane to device memory; 0: no such access
  int widest_store = 0, narrowest_store = 0;      // the same for stores; 0: none, or not known
  bool compare_and_swap = false;                  // whether an atomic was compiled to a compare-and-swap loop
  double occupancy = 0;                           // share of a unit's threads that can be resident
  bool operator==(const CodeFacts&) const = default;
};

// What a runner needs in order to run any candidate of a group, and a worker in order to judge the outcome.
struct Problem {
  std::string key;                  // problem key of the group (SHA-256, hex)
  std::vector<BufferSpec> buffers;  // the arguments of every candidate, in call order
  bool operator==(const Problem&) const = default;
};

// Expected values at sampled output elements, computed by the oracle. The runner never sees them: the worker asks it
// for these elements after the run and compares.
struct Check {
  uint64_t seed = 0;
  struct Sample {
    int buffer = 0;  // index of the sampled buffer in Problem::buffers
    int64_t index = 0;
    double expected = 0;
    double bound = 0;  // passes if |got - expected| <= bound; NaN expects NaN, and infinities must match
    bool operator==(const Sample&) const = default;
  };
  std::vector<Sample> samples;
  bool operator==(const Check&) const = default;
};

// How to measure; part of the key. `cold`: buffers are rotated so that no run finds its data in a cache.
struct Recipe {
  bool cold = false;
  int min_repeats = 5;
  int max_repeats = 200;
  int64_t budget_ns = 150'000'000;       // time limit for measuring one candidate
  int64_t deadline_ns = 20'000'000'000;  // for one candidate in all; the runner is killed when it is over
  double hopeless_factor = 2.0;          // a candidate is given up when two samples both exceed this times best_ns
  int64_t best_ns = 0;                   // the best time known when the lease was made (undisturbed_ns); 0 = none
  bool interleave = false;               // promotion: rounds over all candidates instead of one candidate after the
                                         // other
  int threads = 0;                       // number of threads; 0 = as the Source says
  double lost_factor = 0;  // in rounds: who exceeds the best by this factor after some is timed no further; 0: all are
  bool operator==(const Recipe&) const = default;
};

enum class Outcome : uint8_t { kCorrect, kCompileError, kWrongResult, kTimeout, kRuntimeError, kRejected };
inline constexpr const char* kOutcomeNames[] = {"correct", "compile_error", "wrong_result",
                                                "timeout", "runtime_error", "rejected"};

// One kernel to compile, check and time.
struct Candidate {
  int64_t trial = 0;  // number of the trial in its group, from 0
  std::string plan;   // plan text, kept for logs and provenance
  Source source;
  bool operator==(const Candidate&) const = default;
};

// A candidate as it is stored: its source follows from its plan.
struct PlannedTrial {
  int64_t trial = 0;
  std::string plan;  // one line
  bool operator==(const PlannedTrial&) const = default;
};

// Kernels that run one after another, as a client runs a graph that was tuned.
struct ChainStep {
  int kernel = 0;              // index of a candidate of the batch
  std::vector<int> arguments;  // in the order of the kernel's arguments: a buffer of the batch's problem, or beyond
                               // these an intermediate
  bool operator==(const ChainStep&) const = default;
};
struct KernelChain {
  int64_t trial = 0;                   // its number among the chains, which no candidate of the batch has
  std::string plan;                    // what it is called: one line
  std::vector<int64_t> intermediates;  // bytes of every value that only kernels of the chain use
  std::vector<ChainStep> steps;
  bool operator==(const KernelChain&) const = default;
};

// The outcome of one candidate, or of one chain.
struct Trial {
  int64_t trial = 0;
  std::string plan;
  Outcome outcome = Outcome::kRejected;
  std::vector<int64_t> samples_ns;  // raw; one per timed run; a sample of a fast kernel is the mean over an inner loop
  bool hopeless = false;            // correct, but given up early, so there are fewer samples than asked for
  double max_error = 0;             // error of the sample with the largest error/bound
  double bound = 0;                 // bound of the sample with the largest error/bound
  std::string message;              // first lines of the compiler's or the fault's message
  double compile_s = 0, check_s = 0, measure_s = 0;
  std::string object_sha256;             // digest of the compiled object; empty when it was not kept
  CodeFacts code;                        // facts about a GPU kernel's code, whatever the outcome
  int clock_mhz = 0;                     // clock of the GPU's units while it was timed; 0: not known
  std::vector<int64_t> clocks_mhz = {};  // the clock right after each sample; empty: not known
  bool operator==(const Trial&) const = default;
};

// The unit a worker leases: candidates of one group that share problem, check and recipe.
struct Batch {
  std::string id;     // (batch_id.h); the same after a restart of the coordinator
  std::string trace;  // of the job that it is measured for (proto/trace.h); empty: unknown
  int64_t phase = 0;  // as in PhaseTrial
  bool promotion() const { return phase > 0; }
  Problem problem;
  std::vector<Check> checks;  // checks[0] before timing; all of them in a promotion
  Recipe recipe;
  std::vector<Candidate> candidates;
  // If there are any, these are timed whole, in turn, and reported: one trial each. The candidates are the kernels that
  // they consist of, which were verified before.
  std::vector<KernelChain> chains = {};
  bool keep_objects = false;  // whether compiled objects are uploaded with the report
  CodeLimits limits;          // limits of the target's units; GPUs only
};

// The detail of a device that says where its worker runs compilers and candidates: "bubblewrap" or "none".
inline constexpr std::string_view kSandboxDetail = "sandbox";

// A machine as its worker describes it. The fingerprint is part of the problem key.
struct Device {
  std::string target;  // best row of kTargets it can run, e.g. "cpu:avx512"
  std::string name;    // name of the processor, e.g. "AMD EPYC ..."
  int threads = 1;     // number of hardware threads that may be used
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  std::vector<std::string> compilers;  // names of the usable compilers: "gcc", "clang"
  std::string compiler_versions;       // the environment part of a record's identity
  // For a GPU `threads` counts units (SMs, CUs), l1 is a unit's shared memory and l3 is 0. `details` is provenance and
  // no part of the identity: memory, driver, clocks, MIG, power limit, as "name=value" separated by spaces.
  std::string details = {};
  // A library that candidates may call, with its version: "onednn=2.6.3"; empty: none. Part of the environment, and of
  // the keys of a job whose device has it.
  std::string libraries = {};
  std::string fingerprint() const;                         // returns "target|name|threads|caches"
  std::string detail(std::string_view detail_name) const;  // returns the value of a detail; "" when it has none
  bool operator==(const Device&) const = default;
};

// The part of an environment that names the compiler of a source, with its version and linker: "gcc=12.2.0, ..". Empty:
// it names none.
std::string compiler_of(const std::string& environment, const Source& source);

// What kernels are compared by, wherever a program chooses among them: the least time that two samples confirm, which
// is the second least sample. Other load on the machine only ever adds time, and a single sample may be false
// (docs/decisions/0020-least-samples.md). The only sample where there is one; 0 when empty.
double undisturbed_ns(const std::vector<int64_t>& samples_ns);
// What people are told of a kernel's time: in reports, bundles and listings. 0 when empty.
double median_of(std::vector<int64_t> samples);

}  // namespace wl

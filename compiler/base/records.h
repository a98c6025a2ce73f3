// Plain data that coordinator, worker, runner, store and client exchange. It has no behaviour: `proto/wire` converts it
// to messages, `server/store` to rows of a database. Times are in nanoseconds unless the name says otherwise.
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
  uint64_t stream = 0;  // which stream of random numbers a generated input is drawn from
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const BufferSpec&) const = default;
};

// Source is a kernel as text, with what is needed to compile and launch it.
//
// CPU ABI: `extern "C" void ENTRY(long block, void* const* args, char* scratch)` is called once for every block in [0,
// grid), by at most `threads` threads and in any order. `scratch` is private to the thread, 4096-byte aligned,
// `scratch_bytes` long and not zeroed. `args` are 64-byte aligned and never alias. A kernel of several `passes` is
// called for every block in [0, passes * grid), one pass after the other; a pass begins when the one before it has
// ended on all threads. After its arguments such a kernel gets one more pointer, its workspace: `work_bytes` bytes that
// all blocks share, 64-byte aligned, kept from the first pass to the last, and not zeroed except for the first
// kCounterBytes bytes. These bytes are zero when a kernel begins and must be zero when it ends; blocks use them as
// counters, to find out which block finishes last.
//
// A kernel that reads elements at computed indices (a gather) may define `extern "C" const long ENTRY_outside`: the
// offset in the scratch of two i64, the extent of an axis and an index. The kernel writes them when an index lies
// outside its axis, and reads the nearest element instead. The caller sets the extent to 0 before a launch; an extent
// that is still 0 afterwards means that all indices were inside.
inline constexpr int64_t kCounterBytes = 4096;
inline constexpr int64_t kOutsideBytes = 64;

struct Source {
  std::string target;    // name of a row of kTargets, e.g. "cpu:avx512"
  std::string compiler;  // name of the compiler: "gcc" or "clang"
  std::string prelude;   // text that precedes `text` in the translation unit; the same for all candidates of a compiler
  std::string text;      // the kernel; every symbol it defines starts with `entry`
  std::string entry;     // name of the kernel's function; unique, since it is derived from the hash of the text
  int64_t grid = 1;
  int threads = 1;
  int64_t scratch_bytes = 0;
  // GPU ABI: ENTRY is launched with pointers to the arguments, `grid` blocks of `threads` lanes (GPU threads) and
  // `scratch_bytes` bytes of dynamic shared memory. load_bytes and store_bytes are the widths in bytes of a lane's
  // widest accesses to device memory, as the kernel's text promises them; 0: no promise.
  int load_bytes = 0, store_bytes = 0;
  // A GPU kernel of several passes is launched once for each pass. Its last two parameters, after the arguments, are a
  // pointer to the workspace and the number of the pass, an int.
  int passes = 1;
  int64_t work_bytes = 0;
  // The library (compiler/base/libraries.h) that the kernel opens when it is loaded; empty: none. On a CPU such a
  // kernel defines one more function, `extern "C" const char* ENTRY_prepare()`. It must be called once before the first
  // launch, and returns an error message, or null. On a GPU the kernel's text, and its object, is the text of a
  // MatmulCall (compiler/base/matmul.h).
  std::string library = {};
  bool operator==(const Source&) const = default;
};

// The limits of a GPU that a kernel's code must keep. `wave`: the threads of a wave; 0: code is not checked against
// these limits. block_*: the most threads, and bytes of shared memory, of a block. unit_*: the threads, blocks, 32-bit
// registers and bytes of shared memory of a unit (an SM or CU). lane_registers: the most registers of a thread.
struct CodeLimits {
  int wave = 0;
  int block_threads = 0, unit_threads = 0, unit_blocks = 0;
  int lane_registers = 0, unit_registers = 0;
  int64_t block_shared = 0, unit_shared = 0;
  bool operator==(const CodeLimits&) const = default;
};

// What a compiler made of a GPU kernel, known before the kernel runs. compiler/base/code.h has the text form. If
// `registers` is 0, all fields are unknown.
struct CodeFacts {
  int registers = 0;                         // 32-bit registers of each lane (thread)
  int64_t spill_bytes = 0, stack_bytes = 0;  // bytes per lane, in device memory, for spills and for the stack
  // Bytes of shared memory of a block: those that the kernel's code declares, and those that the launch adds.
  int64_t static_shared = 0, dynamic_shared = 0;
  // Bytes of a lane's widest and narrowest access to device memory; 0: there is no such access or, for stores, its
  // width is not known.
  int widest_load = 0, narrowest_load = 0;
  int widest_store = 0, narrowest_store = 0;
  bool compare_and_swap = false;  // whether an atomic was compiled to a compare-and-swap loop
  double occupancy = 0;           // share of a multiprocessor's threads that can be resident, 0 to 1
  bool operator==(const CodeFacts&) const = default;
};

// What a runner needs to run any candidate of a group, and what a worker needs to judge the outcome.
struct Problem {
  std::string key;                  // the group's key, a SHA-256 in hexadecimal digits
  std::vector<BufferSpec> buffers;  // the arguments of every candidate, in call order
  bool operator==(const Problem&) const = default;
};

// Expected values of sampled output elements, computed by the oracle (the double-precision evaluation of the graph).
// The runner never sees the expected values: after the run the worker asks the runner for these elements and compares
// them.
struct Check {
  uint64_t seed = 0;
  struct Sample {
    int buffer = 0;  // index of the sampled buffer in Problem::buffers
    int64_t index = 0;
    double expected = 0;
    double bound = 0;  // an element passes if |got - expected| <= bound; NaN matches only NaN, infinities must be equal
    bool operator==(const Sample&) const = default;
  };
  std::vector<Sample> samples;
  bool operator==(const Check&) const = default;
};

// How a candidate is measured; part of the key of its record. `cold`: each launch uses the next of several copies of
// the buffers, so that no launch finds its data in a cache.
struct Recipe {
  bool cold = false;
  int min_repeats = 5;
  int max_repeats = 200;
  int64_t budget_ns = 150'000'000;       // time in ns that measuring one candidate may take
  int64_t deadline_ns = 20'000'000'000;  // time in ns for one candidate as a whole; after that the runner is killed
  // Timing of a candidate ends early if all its samples, at least two, exceed best_ns by this factor.
  double hopeless_factor = 2.0;
  int64_t best_ns = 0;      // the group's best undisturbed_ns() when the batch was leased; 0: none yet
  bool interleave = false;  // whether the candidates are timed in turns, round after round, as in a promotion
  int threads = 0;          // threads that run a CPU kernel; 0: as many as its Source says
  double lost_factor = 0;   // if > 0: after some rounds, candidates slower than the best one by this factor are dropped
  bool operator==(const Recipe&) const = default;
};

enum class Outcome : uint8_t { kCorrect, kCompileError, kWrongResult, kTimeout, kRuntimeError, kRejected };
inline constexpr const char* kOutcomeNames[] = {"correct", "compile_error", "wrong_result",
                                                "timeout", "runtime_error", "rejected"};

// One kernel to compile, check and time.
struct Candidate {
  int64_t trial = 0;  // number of the trial in the group's search, from 0
  std::string plan;   // plan text, kept for logs and provenance
  Source source;
  bool operator==(const Candidate&) const = default;
};

// A candidate as the store keeps it: without its source, which can be generated from its plan.
struct PlannedTrial {
  int64_t trial = 0;
  std::string plan;  // the text of the plan, which is one line
  bool operator==(const PlannedTrial&) const = default;
};

// One launch of a KernelChain.
struct ChainStep {
  int kernel = 0;  // the kernel that is launched: its index in Batch::candidates
  // The arguments in call order. Each is an index into Problem::buffers or, from the number of these buffers on, into
  // KernelChain::intermediates.
  std::vector<int> arguments;
  bool operator==(const ChainStep&) const = default;
};
// Kernels that run one after another and are timed as a whole, as a client runs a graph that was tuned.
struct KernelChain {
  int64_t trial = 0;                   // trial number of the chain, which no candidate of the batch has
  std::string plan;                    // name of the chain, without line breaks
  std::vector<int64_t> intermediates;  // sizes in bytes of the values that only kernels of the chain use
  std::vector<ChainStep> steps;
  bool operator==(const KernelChain&) const = default;
};

// The outcome of one candidate, or of one chain.
struct Trial {
  int64_t trial = 0;
  std::string plan;
  Outcome outcome = Outcome::kRejected;
  std::vector<int64_t> samples_ns;  // time in ns of each launch; of a fast kernel: the mean over several launches
  bool hopeless = false;            // whether measuring ended early because the candidate, though correct, was too slow
  double max_error = 0;             // error of the sampled element with the largest error/bound
  double bound = 0;                 // bound of the sampled element with the largest error/bound
  std::string message;              // why the candidate failed, as the compiler, the check or the crash reported it
  double compile_s = 0, check_s = 0, measure_s = 0;
  std::string object_sha256;             // digest of the compiled object; empty: the object was not kept
  CodeFacts code;                        // facts about the compiled code of a GPU kernel, whatever the outcome
  int clock_mhz = 0;                     // clock of the GPU's multiprocessors in MHz during timing; 0: not known
  std::vector<int64_t> clocks_mhz = {};  // clock of the multiprocessors in MHz after each sample; empty: not known
  bool operator==(const Trial&) const = default;
};

// What a worker leases at once: candidates of one group that have the same problem, check and recipe.
struct Batch {
  std::string id;     // id that batch_id() (batch_id.h) makes; the same after a restart of the coordinator
  std::string trace;  // trace id (proto/trace.h) of the job that the batch belongs to; empty: unknown
  int64_t phase = 0;  // the part of a search in which the batch is measured, as in PhaseTrial (job.h)
  bool promotion() const { return phase > 0; }
  Problem problem;
  std::vector<Check> checks;  // checks[0] is done before a candidate is timed; in a promotion all are done
  Recipe recipe;
  std::vector<Candidate> candidates;
  // If there are any chains, the worker times each chain as a whole, in turns with the other chains, and reports one
  // trial for each chain. The candidates are then the kernels of the chains; earlier batches have verified them.
  std::vector<KernelChain> chains = {};
  bool keep_objects = false;  // whether compiled objects are uploaded with the report
  CodeLimits limits;          // limits of the GPU that a candidate's compiled code must keep; unset for CPUs
};

// The step that a worker names at renewals of a lease that it holds while it measures another batch.
inline constexpr std::string_view kWaitsForOthers = "waiting-for-others";

// Key of the entry of Device::details that names the sandbox in which the device's worker runs compilers and
// candidates: "bubblewrap" or "none".
inline constexpr std::string_view kSandboxDetail = "sandbox";

// A machine as its worker describes it. The machine's fingerprint is part of the keys of problems.
struct Device {
  std::string target;  // name of the best row of kTargets that the machine can run, e.g. "cpu:avx512"
  std::string name;    // name of the processor, e.g. "AMD EPYC ..."
  int threads = 1;     // number of hardware threads that may be used
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  std::vector<std::string> compilers;  // names of the usable compilers: "gcc", "clang"
  std::string compiler_versions;       // versions of the compilers; with `libraries`, the environment of records
  // For a GPU `threads` is the number of units (SMs, CUs), l1_bytes is a unit's shared memory and l3_bytes is 0.
  // `details` records the device's memory, driver, clocks, MIG mode and power limit, as "name=value" separated by
  // spaces. It is not part of the identity.
  std::string details = {};
  // The library that candidates may call, with its version: "onednn=2.6.3"; empty: none. This text is part of the
  // environment and of the keys of records.
  std::string libraries = {};
  std::string fingerprint() const;                         // returns "target|name|tTHREADS|L1/L2/L3"
  std::string detail(std::string_view detail_name) const;  // returns an entry of `details`; "" if there is none
  bool operator==(const Device&) const = default;
};

// Returns the part of an environment that describes the compiler of a source, with the versions of compiler and linker:
// "gcc=12.2.0, ..". Returns "" if the environment does not describe it.
std::string compiler_of(const std::string& environment, const Source& source);

// Returns the time by which kernels are compared wherever a program chooses among them: the second smallest sample,
// which is the least time that two samples confirm. Other load on the machine can only add time, and a single sample
// may be false (docs/design/search.md#least-samples). Returns the only sample if there is one, and 0 if there is none.
double undisturbed_ns(const std::vector<int64_t>& samples_ns);
// Returns the time of a kernel that reports, bundles and listings show to people: the median; 0 if there are no
// samples.
double median_of(std::vector<int64_t> samples);

}  // namespace wl

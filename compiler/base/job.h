// The request and the result of a tuning job, and the record of a kernel in the store: plain data that is sent and
// stored. A JobResult is assembled from KernelRecords only, so the same records give the same result. Times are in
// nanoseconds unless the name says otherwise. The figures of a group (ops that share a kernel) are for one occurrence
// of the group in the graph.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/base/rates.h"
#include "compiler/base/records.h"

namespace wl {

inline constexpr int kOutcomeCount = 6;
using OutcomeCounts = std::array<int64_t, kOutcomeCount>;  // number of trials with each outcome, indexed by Outcome

struct TuneOptions {
  std::string target = "cpu";
  int64_t trials = 0;   // number of trials for each distinct group; 0: as `effort` says
  double budget_s = 0;  // time budget of the whole job in seconds; 0: no limit
  uint64_t seed = 0;
  std::string strategy = "portfolio";
  std::string effort = "default";  // how much the job does: a name in kEfforts
  std::string cover = "stitched";  // how ops are grouped into kernels: a cover named in compiler/cover/table/covers.def
  bool cold = false;
  bool require_cached = false;
  bool retune = false;
  int64_t at_once = 0;         // how many rounds of one group may be measured at once; 0: follows from the workers
  bool kernels_alone = false;  // whether a cover is chosen by its kernels' times alone, and never timed as a whole
  // Whether the job's batches are measured only while no other work waits for the workers.
  bool background = false;
  std::string libraries = "none";  // the library that candidates may call: a name in kLibraries, or kNoLibraries
  std::optional<Device> device;    // the machine to tune for; absent: the coordinator chooses among its workers
  bool operator==(const TuneOptions&) const = default;
};

// What a program ran of one kernel.
struct KernelUse {
  std::string key;    // problem key of the kernel
  int64_t calls = 0;  // number of launches
  int64_t ns = 0;     // estimate of their total time in ns, from some launches that were timed; 0: none was
  bool operator==(const KernelUse&) const = default;
};

// How much a job does before it answers: a row for each value of `--effort`.
struct Effort {
  std::string_view name, says;
  int64_t trials;  // number of trials for each distinct group, unless the job asks for a number
  // Whether the job also measures what its own cover might be replaced by or is compared with: parts of groups, other
  // covers, one kernel per operation.
  bool compares = true;
  bool certifies = false;  // whether a planned cover is chosen again until no other could be faster
};

inline constexpr Effort kEfforts[] = {
    {.name = "now",
     .says = "no search: kernels that the store has, and default schedules where it has none",
     .trials = 1,
     .compares = false},
    {.name = "quick", .says = "8 candidates for each group", .trials = 8},
    {.name = "default", .says = "32 candidates for each group", .trials = 32},
    {.name = "thorough",
     .says = "128 candidates for each group; a planned cover is chosen until no other could be faster",
     .trials = 128,
     .certifies = true},
};

inline constexpr std::string_view kDefaultEffort = "default";

// Returns the row of this name; null: there is none.
inline const Effort* effort_named(std::string_view name) {
  for (const Effort& row : kEfforts)
    if (row.name == name) return &row;
  return nullptr;
}

// Returns the row of the effort that a job asked for, or of the default effort if a store has a name of another
// version.
inline const Effort& effort_of(const TuneOptions& options) {
  const Effort* const row = effort_named(options.effort);
  return row == nullptr ? *effort_named(kDefaultEffort) : *row;
}

// Returns the names of all rows.
inline std::vector<std::string> effort_names() {
  std::vector<std::string> names;
  for (const Effort& row : kEfforts) names.emplace_back(row.name);
  return names;
}

// The phase of a trial says in which part of a search it was measured: 0 in a round of the search, n in the n-th
// promotion (the final comparison of the best plans), and n + k * kConfirmation in the k-th confirmation of that
// promotion by another worker.
inline constexpr int64_t kConfirmation = 1'000'000;
inline int64_t promotion_of(int64_t phase) {
  return phase % kConfirmation;
}
inline bool confirms(int64_t phase) {
  return phase > kConfirmation;
}
// Returns the name of the worker to which a process belongs. A process is called NAME#EPOCH; the worker's name is NAME.
inline std::string name_of_process(std::string_view process) {
  return std::string(process.substr(0, process.rfind('#')));
}
// A trial as the store keeps it, with its phase and the worker process that reported it.
struct PhaseTrial {
  int64_t phase = 0;
  Trial trial;
  std::string worker = {};  // the process that reported the trial, NAME#EPOCH; empty: no process did
  std::string name() const { return name_of_process(worker); }
};

// Returns the principal of a worker, which is the caller that answers for it: the worker's name up to the first '/'.
// All devices of one process, and all workers that call with one certificate or token, have the same principal.
inline std::string principal_of(std::string_view worker) {
  return std::string(worker.substr(0, worker.find('/')));
}
// Returns the name of a worker or of a principal as people see it. A principal that comes from the URI of a certificate
// has escapes for "/", "#" and "%"; this function undoes them: "spiffe:%2F%2Flab%2Ftwo/gpu0" becomes
// "spiffe://lab/two/gpu0". It is the exact inverse of Authorizer::as_principal(), so that the Authorizer can find a
// principal's row in the file of --callers.
std::string shown_name(std::string_view worker);
// The principal of all workers whose callers showed nothing that identifies them. No caller can have this name.
inline constexpr std::string_view kNobodyKnown = "local";
// Whether the principal of a worker is known. Two workers without a known principal may belong to one caller, and so
// may workers that older coordinators registered under a name of their own choice (without a '/').
inline bool is_answered_for(std::string_view worker) {
  return worker.find('/') != std::string_view::npos && principal_of(worker) != kNobodyKnown;
}

// The winner of a search: source, compiled object, measurements, checks and provenance of one kernel, under one digest.
struct KernelRecord {
  std::string digest;       // the record's digest, which record_digest() computes
  std::string key;          // the key of the group that the kernel computes, as in Problem
  std::string environment;  // the compilers that made the kernel, with their versions
  Device device;
  std::string graph;  // canonical text of the group's graph
  std::string plan, default_plan;
  Problem problem;
  Source source;
  std::string object_sha256;
  // The samples of the kernel and those of the kernel with the default schedule; both kernels were timed in the same
  // rounds.
  std::vector<int64_t> samples_ns, default_samples_ns;
  double max_error = 0, bound = 0;
  std::vector<uint64_t> check_seeds;
  std::string strategy;
  int64_t trials_asked = 0;
  double budget_s = 0;
  OutcomeCounts outcomes{};
  int64_t bytes = 0, ops = 0;
  double flops = 0;
  double compile_s = 0, check_s = 0, measure_s = 0;  // seconds spent on all trials of the record's key
  // The workers that measured the promotion and the confirmation of this kernel. `confirmed_by` is empty if there was
  // no other worker for the device. Both are empty in records of older versions, which did not store them.
  std::string measured_by = {}, confirmed_by = {};
  // The public key of the coordinator that promoted the record, and that key's signature of digest and generation
  // (proto/trust/signing.h), both in hexadecimal; empty: the record is not signed.
  std::string signed_by = {}, signature = {};
  int64_t generation = 0;  // time of the signature in Unix milliseconds; 0: signed by a version that did not store it
  // The public key and signature of a coordinator whose own compilers made the same object from the source; empty: no
  // coordinator tried to, or none succeeded.
  std::string built_by = {}, built_signature = {};
  bool operator==(const KernelRecord&) const = default;
};
// Returns the SHA-256 over every field but `digest`, `generation`, and the fields of public keys and signatures.
std::string record_digest(const KernelRecord& record);
// Whether the two workers that measured a kernel have principals that are known and different.
bool is_confirmed(std::string_view measured_by, std::string_view confirmed_by);
inline bool is_confirmed(const KernelRecord& record) {
  return is_confirmed(record.measured_by, record.confirmed_by);
}

// What became of a record that was made with other compilers or another driver, when its plan was verified and timed
// again. kWaiting: the plan has not been timed again yet. kKept: the kernel is correct and about as fast as before.
// kMoved: the kernel is correct, but its time has changed or another plan is faster now. kLost: the kernel is wrong or
// does not compile any more.
enum class Reverified : uint8_t { kWaiting, kKept, kMoved, kLost };
inline constexpr int kReverifiedCount = 4;
inline constexpr const char* kReverifiedNames[] = {"waiting", "kept", "moved", "lost"};

struct GroupResult {
  std::string key;
  std::string graph;
  int64_t count = 0;  // how often the group occurs in the graph
  int64_t ops = 0;
  std::string source;  // origin of the record: "searched", "cached" or "transferred"
  int64_t kernels_default = 0, kernels = 1;
  int64_t bytes_default = 0, bytes = 0;
  double flops = 0;
  double default_ns = 0, best_ns = 0;
  // Whether default_ns, the time of one kernel for each op, has estimates of kernels that were not timed.
  bool default_estimated = false;
  std::vector<int64_t> samples_ns;
  OutcomeCounts trials{};
  double max_error = 0, bound = 0;
  std::string plan;
  std::string record_digest;
  std::string measured_by = {}, confirmed_by = {};  // the workers that measured the kernel, as in KernelRecord
  bool built = false;                               // whether a coordinator compiled the source to the same object
  bool operator==(const GroupResult&) const = default;
};

// Returns the result of a group with the fields that can be copied from its record. These fields are left unset:
// `count`, `source`, and the figures of the default kernels.
GroupResult group_of(const KernelRecord& record);

struct ResultBuffer {
  enum class Kind : uint8_t { kIntermediate, kInput, kOutput };
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  Kind kind = Kind::kIntermediate;
  bool operator==(const ResultBuffer&) const = default;
};

struct Step {
  int group = 0;  // index of the step's group in JobResult::groups
  // Index in JobResult::buffers of each argument of the step, in the order of problem.buffers.
  std::vector<int> arguments;
  bool operator==(const Step&) const = default;
};

struct Binding {
  std::string name;
  int buffer = 0;
  bool operator==(const Binding&) const = default;
};

// A cover of the graph (its division into kernels) that was timed as a whole: all its kernels ran one after another,
// alternating with those of other covers.
struct TimedCover {
  std::string name;  // name of the cover: "planned", "greedy", and so on
  int64_t kernels = 0, bytes = 0;
  double kernels_ns = 0;            // sum in ns of the times of the cover's kernels, each timed alone
  std::vector<int64_t> samples_ns;  // times of the whole cover in ns; empty: it could not be timed, and `why` says why
  bool chosen = false;
  std::string why;  // for people: why the cover was chosen, or why it could not be timed
  bool operator==(const TimedCover&) const = default;
};

struct JobResult {
  std::vector<GroupResult> groups;  // results of the distinct groups
  std::vector<Step> steps;          // the kernel launches of the whole graph, in order
  std::vector<ResultBuffer> buffers;
  std::vector<Binding> inputs, outputs;  // every input and output of the graph, in the graph's order
  std::string graph_hash;
  // Totals over the graph; each group counts as often as it occurs in the graph.
  int64_t kernels_default = 0, kernels = 0;
  int64_t bytes_default = 0, bytes = 0;
  double default_ns = 0, best_ns = 0;
  bool default_estimated = false;  // as in GroupResult
  int64_t trials = 0;
  double enumerate_s = 0, compile_s = 0, check_s = 0, measure_s = 0, total_s = 0;
  Device device;
  std::string environment;
  std::string warploom_version;
  int64_t cover_rounds = 0;             // how often the cover was changed because of measured times
  bool cover_certified = false;         // whether every candidate that could improve the cover was measured
  std::vector<TimedCover> covers = {};  // the covers that were timed as a whole; empty: none was
  MeasuredRates rates = {};             // the device's rates, measured by a worker that was connected at the job's end
  // Returns the time in ns of the whole program, whose kernels run one after another: undisturbed_ns() of the chosen
  // cover or, if the program is a single kernel, of that kernel; 0 if the program was not timed as a whole.
  double whole_ns() const;
  bool operator==(const JobResult&) const = default;
};

enum class JobState : uint8_t { kQueued, kRunning, kSucceeded, kFailed, kCancelled, kNotCached };
inline constexpr int kJobStateCount = 6;
inline constexpr const char* kJobStateNames[] = {"queued", "running", "succeeded", "failed", "cancelled", "not_cached"};
inline bool is_done(JobState state) {
  return state >= JobState::kSucceeded;
}

struct GroupProgress {
  std::string key;
  std::string name;  // name of the group for people, with its first op and shape
  int64_t trials_done = 0, trials_total = 0;
  int64_t count = 0;
  double best_ns = 0, default_ns = 0;  // in ns: best time so far, and time of the default kernels; 0: not measured
  OutcomeCounts outcomes{};
  bool done = false;
  bool cached = false;
  bool is_default = false;  // whether the group's kernel is measured only for comparison
  bool operator==(const GroupProgress&) const = default;
};

struct JobProgress {
  std::vector<GroupProgress> groups;
  int64_t trials_done = 0, trials_total = 0;
  double elapsed_s = 0, left_s = 0;
  int workers = 0;
  std::string phase;
  bool operator==(const JobProgress&) const = default;
};

struct Job {
  std::string name;
  JobState state = JobState::kQueued;
  std::string label;
  TuneOptions options;
  bool cached = false;
  uint64_t version = 0;
  JobProgress progress;
  std::optional<JobResult> result;
  absl::Status error;  // why the job failed; OK in every other state
  int64_t created_unix_ms = 0, finished_unix_ms = 0;
  std::optional<Device> device;
  bool cancelling = false;
  std::string trace;  // trace id of the job (proto/trace.h); empty: the job is older than trace ids
};

}  // namespace wl

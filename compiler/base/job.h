// What a tuning job asks and answers, and what the store keeps of a kernel: plain data that is sent and stored. A
// JobResult is assembled from KernelRecords only, so the same records give the same answer. Times are nanoseconds
// unless the name says otherwise. Figures of a group are for one occurrence of it.
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
using OutcomeCounts = std::array<int64_t, kOutcomeCount>;  // numbers of trials, indexed by Outcome

struct TuneOptions {
  std::string target = "cpu";
  int64_t trials = 0;   // per distinct group; 0 = the number that `effort` implies
  double budget_s = 0;  // time budget of the whole job in seconds; 0 = none
  uint64_t seed = 0;
  std::string strategy = "portfolio";
  std::string effort = "default";  // quick, default, thorough
  std::string cover = "stitched";  // which ops share a kernel at most: a name of compiler/cover/table/covers.def
  bool cold = false;
  bool require_cached = false;
  bool retune = false;
  int64_t at_once = 0;         // rounds of a group that are measured at once; 0 = as many as there are workers for it
  bool kernels_alone = false;  // the cover is chosen by the times of its kernels alone
  std::string libraries = "none";  // which library candidates may call: a name of kLibraries
  std::optional<Device> device;    // the machine to tune for; absent: the coordinator's choice among its workers
  bool operator==(const TuneOptions&) const = default;
};

// A trial as it is stored. Its phase is 0 in a round of the search, n in the n-th promotion, and n + k * kConfirmation
// in the k-th confirmation of that promotion, by another worker.
inline constexpr int64_t kConfirmation = 1'000'000;
inline int64_t promotion_of(int64_t phase) {
  return phase % kConfirmation;
}
inline bool confirms(int64_t phase) {
  return phase > kConfirmation;
}
// The name of a worker, of any process NAME#EPOCH of it.
inline std::string name_of_process(std::string_view process) {
  return std::string(process.substr(0, process.rfind('#')));
}
struct PhaseTrial {
  int64_t phase = 0;
  Trial trial;
  std::string worker = {};  // the process that reported it, NAME#EPOCH; empty: none did
  std::string name() const { return name_of_process(worker); }
};

// Who answers for a worker: whoever its name begins with, up to the first '/'. The devices of one process share it, and
// all workers of one certificate or token.
inline std::string principal_of(std::string_view worker) {
  return std::string(worker.substr(0, worker.find('/')));
}
// The principal of all workers whose callers showed nothing that tells who they are. No caller can have this name.
inline constexpr std::string_view kNobodyKnown = "local";
// Whether somebody who is known answers for a worker. Of others, and of those whom older coordinators registered by
// their own word, nobody can tell whether they are one.
inline bool is_answered_for(std::string_view worker) {
  return worker.find('/') != std::string_view::npos && principal_of(worker) != kNobodyKnown;
}

// Source, compiled object, measurements, checks and provenance of one kernel, under one digest.
struct KernelRecord {
  std::string digest;       // digest of all other fields, by record_digest()
  std::string key;          // problem key of the group
  std::string environment;  // the compilers that made the kernel, with their versions
  Device device;
  std::string graph;  // canonical text of the group's graph
  std::string plan, default_plan;
  Problem problem;
  Source source;
  std::string object_sha256;
  // samples of the kernel and of the default schedule, measured in the same rounds
  std::vector<int64_t> samples_ns, default_samples_ns;
  double max_error = 0, bound = 0;
  std::vector<uint64_t> check_seeds;
  std::string strategy;
  int64_t trials_asked = 0;
  double budget_s = 0;
  OutcomeCounts outcomes{};
  int64_t bytes = 0, ops = 0;
  double flops = 0;
  double compile_s = 0, check_s = 0, measure_s = 0;  // seconds spent on the key, over all trials
  // The workers that promoted and confirmed it. Nobody confirmed it: there was no other worker for its device. Both are
  // empty in records of versions that did not say it.
  std::string measured_by = {}, confirmed_by = {};
  // The public key of the coordinator that promoted it, and its signature of digest and generation
  // (proto/trust/signing.h), both in hexadecimal; empty: it is not signed.
  std::string signed_by = {}, signature = {};
  int64_t generation = 0;  // when it was signed, in Unix milliseconds; 0: by a version that did not say it
  // Likewise of a coordinator whose own compilers made the same object of the source; empty: none has tried, or could.
  std::string built_by = {}, built_signature = {};
  bool operator==(const KernelRecord&) const = default;
};
// Returns the SHA-256 over every field but `digest` and those of keys and signatures.
std::string record_digest(const KernelRecord& record);
// Whether these two, who agree on a kernel, are each answered for by somebody else who is known.
bool is_confirmed(std::string_view measured_by, std::string_view confirmed_by);
inline bool is_confirmed(const KernelRecord& record) {
  return is_confirmed(record.measured_by, record.confirmed_by);
}

// What became of a kernel that was made by other compilers or another driver, once its plan was verified and timed
// again: it is right and about as fast; it is right, but its time has changed or another plan is faster now; it is not
// right any more or does not compile.
enum class Reverified : uint8_t { kWaiting, kKept, kMoved, kLost };
inline constexpr int kReverifiedCount = 4;
inline constexpr const char* kReverifiedNames[] = {"waiting", "kept", "moved", "lost"};

struct GroupResult {
  std::string key;
  std::string graph;
  int64_t count = 0;  // how often the group occurs in the graph
  int64_t ops = 0;
  std::string source;  // where the record came from: "searched", "cached" or "transferred"
  int64_t kernels_default = 0, kernels = 1;
  int64_t bytes_default = 0, bytes = 0;
  double flops = 0;
  double default_ns = 0, best_ns = 0;
  std::vector<int64_t> samples_ns;
  OutcomeCounts trials{};
  double max_error = 0, bound = 0;
  std::string plan;
  std::string record_digest;
  std::string measured_by = {}, confirmed_by = {};  // as in the record
  bool built = false;                               // a coordinator's own compilers made the same object
  bool operator==(const GroupResult&) const = default;
};

// What a record says of its group: all but how often that occurs, what its default costs, and where it came from.
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
  int group = 0;               // index of the step's group in JobResult::groups
  std::vector<int> arguments;  // indices in JobResult::buffers, in the order of the record's problem.buffers
  bool operator==(const Step&) const = default;
};

struct Binding {
  std::string name;
  int buffer = 0;
  bool operator==(const Binding&) const = default;
};

// A cover of the whole graph that was timed whole, all of its kernels one after another, in turn with others.
struct TimedCover {
  std::string name;  // of the cover: "planned", "greedy", ..
  int64_t kernels = 0, bytes = 0;
  double kernels_ns = 0;            // its kernels' own times, added up
  std::vector<int64_t> samples_ns;  // of the whole; empty: it could not be timed, and `why` says why
  bool chosen = false;
  std::string why;  // for people: why it was chosen, or could not be timed
  bool operator==(const TimedCover&) const = default;
};

struct JobResult {
  std::vector<GroupResult> groups;  // results of the distinct groups
  std::vector<Step> steps;          // the kernel launches of the whole graph, in order
  std::vector<ResultBuffer> buffers;
  std::vector<Binding> inputs, outputs;  // every input and output of the graph, in its order
  std::string graph_hash;
  // Totals, with each group counted as often as it occurs.
  int64_t kernels_default = 0, kernels = 0;
  int64_t bytes_default = 0, bytes = 0;
  double default_ns = 0, best_ns = 0;
  int64_t trials = 0;
  double enumerate_s = 0, compile_s = 0, check_s = 0, measure_s = 0, total_s = 0;
  Device device;
  std::string environment;
  std::string warploom_version;
  int64_t cover_rounds = 0;             // how often measured times changed the cover
  bool cover_certified = false;         // true when no unmeasured candidate could improve the cover
  std::vector<TimedCover> covers = {};  // those that were timed whole before one was chosen; empty: none
  MeasuredRates rates = {};             // of the device, as a worker that was there when the job ended found them
  // ns of the whole program as it runs, its kernels one after another: the undisturbed time (undisturbed_ns) of the
  // cover that was chosen, or of its only kernel; 0: it was not timed whole.
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
  double best_ns = 0, default_ns = 0;  // best time so far and time of the default kernels; 0 = none yet
  OutcomeCounts outcomes{};
  bool done = false;
  bool cached = false;
  bool is_default = false;  // whether the kernel is measured only for comparison
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
  std::string trace;  // its trace id (proto/trace.h); empty: it came before there were any
};

}  // namespace wl

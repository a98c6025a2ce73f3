// The rows of a store: jobs, searches, batches, records and uses, and what names or selects them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"

namespace wl {

// Who looks at jobs and records. A team ("": no team) sees its own jobs, its own records, and the shared records, which
// belong to no team. If a key has a record of the team and a shared one, the team's own record is taken.
struct Reader {
  std::string team = {};
  bool every = false;  // whether the reader sees the jobs and records of all teams
};

struct JobRow {
  int64_t id = 0;
  std::string team, request_id, body_hash, label, graph, trace;
  TuneOptions options;
  std::optional<Device> device;
  JobState state = JobState::kQueued;
  bool cached = false, cancelling = false;
  bool own = false;  // whether the coordinator made the job by itself; it does not count as a job of its team
  std::optional<JobResult> result;
  absl::Status error;
  int64_t created_ms = 0, started_ms = 0, finished_ms = 0;
  int64_t trials = 0;         // number of trials of the job's groups, set when the job ends
  int64_t plan_attempts = 0;  // how often planning began without ending, perhaps because it crashed the coordinator
};

struct SearchRow {
  int64_t id = 0;
  std::string key, environment, strategy;
  int64_t generation = 0;
  uint64_t seed = 0;
  std::string team = {};
};

struct BatchRow {
  std::string id;
  int64_t search_id = 0;
  int64_t phase = 0, first_trial = 0, size = 0;
  uint64_t check_seed = 0;
  bool leased = false, done = false;  // state of the batch; if both are false, it is ready to be leased
  int64_t attempt = 0, failures = 0;  // number of leases so far, and of those leases that ended without a report
  std::string lease_id, worker;
  std::vector<PlannedTrial> candidates;
  std::vector<std::string> lost_on;  // workers that were lost while they had the batch, one name for each loss
};

// A point of the curve that a search's trials form: the outcome and time of one trial.
struct TrialPoint {
  int64_t trial = 0;
  Outcome outcome = Outcome::kRejected;
  double ns = 0;  // time of the trial in ns, by undisturbed_ns(); 0: it has no samples
};

struct RevokedRows {
  int64_t records = 0, trials = 0;
};

// Where a record comes from: a search of this coordinator, its upstream, or a coordinator whose upstream this one is.
enum class RecordOrigin { kHere, kUpstream, kBelow };
// Search id of records that other coordinators made; this search has no trials.
inline constexpr int64_t kSearchElsewhere = 0;

struct RecordRow {
  KernelRecord record;
  int64_t search_id = 0;
  int64_t created_ms = 0;
  bool pinned = false;
  std::string team = {};  // the team that the record is for; empty: it is shared
};

// Names a record by its digest or, if that is empty, as the record served for a key and environment (empty: any).
struct RecordName {
  std::string key = {}, environment = {}, digest = {};
  Reader reader = {};
};
struct RecordMessage {
  std::string key, bytes;  // the record's key, and the record as a serialized v1::KernelRecord
};

// The id and the names of a record. A new record gets a higher id than all that are stored.
struct NumberedRecord {
  int64_t id = 0;
  std::string digest, key, environment;
};

// Selects records: those for a machine (machine_name() in functions.h), those of groups that a job with the label
// `model` searched, and those whose key begins with `key_prefix`, at most 64 hexadecimal digits in lower case. An empty
// field selects all records.
struct RecordFilter {
  std::string machine = {}, model = {}, key_prefix = {};
};
struct RecordCounts {
  using Names = std::vector<std::pair<std::string, int64_t>>;  // sorted names, each with a number of records or groups
  Names machines, models;
};

// A kernel from another environment that a job verifies again (docs/design/service.md#verifying-winners-again).
struct ReverifiedRow {
  int64_t job_id = 0;
  std::string digest, key;                      // digest and key of the record from the other environment
  std::string environment_before, environment;  // environment that the record was made in, and that it is verified in
  Reverified outcome = Reverified::kWaiting;
  std::string plan_before, plan;  // plan of the record, and plan served for `environment` (empty: none)
  double before_ns = 0, ns = 0;   // times in ns of the kernels of both plans, by undisturbed_ns()
  std::string message = {};       // a description of what has changed, for people
};

// What became of a kernel that replaced another one in programs (docs/design/service.md#kernels-tried-in-place).
enum class TriedInPlace { kWaiting, kKept, kTakenBack, kNotTried };
inline constexpr std::string_view kInPlaceNames[] = {"not tried yet", "kept", "taken back", "not tried"};

// A kernel that replaced another one, and what was seen when both ran in programs.
struct ReplacedRow {
  int64_t id = 0;
  std::string key, team;      // `team`: whose programs the kernels are for; empty: those of all teams
  std::string before, after;  // digests of the replaced record and of the record that replaced it
  TriedInPlace outcome = TriedInPlace::kWaiting;
  double before_ns = 0, after_ns = 0;  // time in ns of all programs that were tried, with each of the kernels
  int64_t calls = 0;                   // number of runs of these programs that were timed, with either kernel
  std::string message = {};            // what was seen, for people
  int64_t made_ms = 0;
};

// Number of days whose uses, misses and times of searches count.
inline constexpr int64_t kUseDays = 7;

// How often programs of a team ("": no team) ran a kernel, and how long.
struct KernelUseOfTeam {
  std::string team;
  KernelUse use;
  int64_t first_day = 0;  // the first of the days that count, as days since 1970 (UTC)
};

// The same with the record that the team is served now.
struct UsedKernelRow {
  KernelUseOfTeam used;
  std::string digest;  // of the record; empty: it is served none any more
  std::string model;   // label of the newest job of the team that has the kernel; empty: there is none
};
struct UsedKernelRows {
  std::vector<UsedKernelRow> records;
  std::map<std::string, int64_t> more;  // how many further kernels each team ran, by team
};

// Jobs of a team for one graph with the same options, which found no kernels and were not to search.
struct MissedJobs {
  std::string team;
  int64_t last_job = 0, count = 0, last_ms = 0;  // id of the last of the jobs, their number, and the last one's time
};
struct MissedGraphs {
  std::vector<MissedJobs> graphs;
  std::map<std::string, std::pair<int64_t, int64_t>> all;  // numbers of graphs and of jobs of each team, by team
};

// What workers took to compile, check and time candidates of a team's searches, and how many candidates these were.
struct SearchTime {
  std::string team;
  int64_t trials = 0;
  double seconds = 0;
};

struct RecordCursor {
  int64_t created_ms = 0;
  std::string digest;
};

}  // namespace wl

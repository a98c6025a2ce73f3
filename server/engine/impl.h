// The parts of the engine, joined. Each part owns its state and the lock that guards it:
//
//   EventLoop    queued events, steps and pool work         one mutex, and an atomic count
//   Workers      the registered workers                     one mutex
//   Leases       ready and leased batches                   one mutex
//     ReadyQueue   ready batches, and calls that wait       one mutex, innermost
//   JobViews     states of jobs that clients see            one mutex
//   PlanMemory   memory reserved for graphs and plans       one mutex
//   Searches     the live searches of groups                none: the engine's thread only
//   Races        the open timings of whole covers           none: the engine's thread only
//   Jobs         the jobs that are not done                 none: the engine's thread only
//   UsageState   what programs run, for those who ask       one mutex
//
// The order of locks (docs/design/service.md#engine-parts-and-locks):
//   The mutexes are leaves: a thread that holds one takes no other, calls no other part and runs no SQL. What two parts
//   need is copied out of the first and then given to the second. EventLoop::busy() takes no lock and may be called
//   while any mutex is held. The only exception: the mutex of ReadyQueue may be taken under that of Leases, never the
//   other way round.
#pragma once

#include <atomic>
#include <condition_variable>

#include "server/engine/bounds/plan_memory.h"
#include "server/engine/job_views.h"
#include "server/engine/jobs.h"
#include "server/engine/leases.h"
#include "server/engine/searches.h"
#include "server/engine/workers.h"
#include "server/jobs/usage.h"

namespace wl {

struct Engine::Impl {
  Impl(Store* store_in, const Compiler* compiler_in, const EngineOptions& options_in)
      : store(store_in), compiler(compiler_in), options(options_in) {}

  Store* const store;
  const Compiler* const compiler;
  const EngineOptions options;

  PlanMemory memory{options.plan_memory_bytes};
  JobViews views;
  Workers workers{store, duration_of(options.lease_s), options.machine_row};
  EventLoop loop{[this] { leases.wake(); }};
  Leases leases{store,
                &workers,
                &loop,
                duration_of(options.lease_s),
                duration_of(options.stuck_s),
                options.patience_s,
                options.share_machine,
                {.stored =
                     [this](int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials,
                            const std::string& worker) {
                       options.stored(trials);
                       loop.post([this, search_id, batch_id, trials, worker] {
                         searches.on_trials(search_id, batch_id, trials, worker);
                         races.on_trials(search_id, batch_id, trials);
                       });
                     },
                 .split =
                     [this](int64_t search_id, const std::string& batch_id, const std::vector<BatchRow>& parts) {
                       loop.post([this, search_id, batch_id, parts] { searches.on_split(search_id, batch_id, parts); });
                     },
                 .ended = options.lease_ended,
                 .store_failed =
                     [this](int64_t search_id, const absl::Status& status) {
                       loop.post([this, search_id, status] {
                         searches.on_store_failure(search_id, status);
                         races.on_store_failure(search_id, status);
                       });
                     }}};
  Searches searches{store, compiler, &loop, &leases, &workers, &jobs, options};
  Races races{store, &leases, &workers, options, [this](int64_t job) { jobs.on_race(job); }};
  Jobs jobs{store,   compiler,
            &loop,   &workers,
            &views,  &searches,
            &races,  [this] { leases.recovered(); },
            options, [this](const Device& device, const std::string& team) { go_on_with_winners(device, team); }};

  // Looks for records of other environments that a worker's device can verify again (reverify/find.cpp). Called on the
  // engine's thread when a worker has registered.
  void look_for_winners(const Device& device, const std::string& team);
  // Called when a job that verified records of other environments has succeeded: makes jobs for those that are left.
  // Thread-safe.
  void go_on_with_winners(const Device& device, const std::string& team);
  // Reads many records, and makes jobs for the winners that suit a worker's device and team and are for `target`
  // (empty: any). Returns the names of the jobs. `again`: as for Engine::reverify(). Thread-safe.
  absl::StatusOr<std::vector<std::string>> queue_winners(const Device& device, const std::string& team,
                                                         const std::string& target, bool again);
  // Makes a job that searches a kernel further which programs run, if workers have nothing else to do
  // (demand/background.cpp). Called on the engine's thread at every tick.
  void look_for_demand();
  absl::StatusOr<std::vector<Demand>> demands(const std::vector<Device>& in_use, std::vector<RecordRow>* records);
  absl::StatusOr<std::optional<int64_t>> search_further(const RecordRow& row, int64_t trials);
  absl::StatusOr<std::optional<int64_t>> search_used(const std::vector<Device>& in_use);
  absl::StatusOr<std::optional<int64_t>> make_missed(const std::vector<Device>& in_use);
  absl::StatusOr<std::optional<int64_t>> try_in_place(const std::vector<Device>& in_use);  // demand/in_place.cpp
  // Stores a job of the coordinator's own, and lets clients see it.
  absl::StatusOr<JobRow> put_own(const JobRow& job);
  absl::StatusOr<int64_t> begin_own(const JobRow& job, JobPlan plan);
  bool is_searching();
  // What background searches have had so far.
  struct Given {
    int64_t day = 0;
    std::map<std::string, double> given;  // number of trials that were made for each team on that day
    std::set<std::string> unfit;          // keys that this version cannot search further
    // For each key, how many trials its last background search asked for; the search may have failed.
    std::map<std::string, int64_t> asked;
    // Returns how many trials a kernel counts as having had: those of its record or, if more, those last asked for.
    int64_t trials_of(const std::string& key, int64_t of_record) const;
    // Whether a team was given as many trials on this day as its rules allow.
    bool is_over(const std::string& team, const TeamRules& rules) const;
  };
  struct BackgroundState {
    // Used by the engine's thread only.
    bool looking = false;                          // whether the pool is choosing a kernel
    std::optional<int64_t> job;                    // id of the last job that was made
    std::optional<Clock::time_point> alone_since;  // since when that job has had no worker
    Clock::time_point next;                        // when to look again, if the last look found nothing
    // Used by the pool's thread that chooses a kernel; there is one at a time.
    Given so_far;
    bool made_last = false;      // whether the last job was made for a graph without kernels
    std::set<std::string> made;  // graphs, by JobRow::body_hash, for which default kernels were made
  } background;
  // Why no search of the coordinator's own begins now; empty: one may (demand/background.cpp).
  std::string background_pause();

  // What programs run and what they missed (demand/usage.cpp, demand/missed.cpp).
  absl::StatusOr<std::shared_ptr<const UsageFacts>> usage_facts();
  absl::StatusOr<std::shared_ptr<const UsageFacts>> make_usage_facts();
  absl::Status add_used_kernels(UsageFacts* facts);
  absl::Status look_for_missed();
  // What a record says of its kernel: `use`, the team and the sums by day are not set.
  struct UsageRecord {
    UsedKernel kernel;
    Device device;
  };
  // Returns what a record says; nullptr: it cannot be read.
  absl::StatusOr<const UsageRecord*> usage_record(const std::string& digest);
  struct UsageState {
    std::mutex mutex;  // guards the members up to the next comment
    std::condition_variable made;
    bool making = false;                                             // whether a thread makes new facts
    std::shared_ptr<const UsageFacts> facts;                         // the last that were made; null: none were
    Clock::time_point next;                                          // when to make new ones
    std::shared_ptr<const Given> given = std::make_shared<Given>();  // a copy of BackgroundState::so_far
    // Used by the thread that makes facts; there is one at a time.
    std::map<std::string, UsageRecord> records;             // by digest
    std::map<std::string, std::vector<MissedGroup>> plans;  // by job and device; empty: not planned
    std::vector<MissedUsage> missed;
    std::map<std::string, std::pair<int64_t, int64_t>> missed_all;
    Clock::time_point next_missed;
  } usage;
  void end_lost();  // Ends the leases of workers whose connections are lost. Called on the engine's thread.
  std::atomic<bool> leaving = false;
  std::atomic<bool> told = false;  // whether a program has said what it runs since the coordinator started
  // When look_for_winners() last ran, by device, environment and team of the worker; used by the engine's thread only.
  std::map<std::string, Clock::time_point> looked;
};

// A job that a client asks for, before it is stored; it is already done if the store has the answer.
struct NewJob {
  JobRow row;
  std::optional<JobPlan> plan;  // the job's plan, if the device is known and the store has no answer to the whole job
  std::string result_id;  // id under which the job's result is stored for later jobs; empty: it is not stored for them
  int64_t hits = 0, misses = 0;  // numbers of the job's groups with and without a sufficient record in the store
};
// Returns a running job that the coordinator makes by itself (JobRow::own), for options that name its device. `kind`:
// beginning of its request_id. `graph`: empty for a job that verifies winners again.
JobRow own_job(const std::string& kind, const std::string& team, const std::string& label, TuneOptions options,
               const std::string& graph = "");
// Returns the time in ns of the kernel of a record by the machine's peak rates; 0: not known.
double bound_of(const KernelRecord& record);
// Answers a job from the store, or plans it. Records and devices that the store lacks are looked for at the upstream
// first. If the device is not known yet, the job stays queued, which is no error.
absl::StatusOr<NewJob> answer_or_plan(JobRow row, Store& store, const Compiler& compiler, const Workers& workers,
                                      const Elsewhere& elsewhere, Work* work);

}  // namespace wl

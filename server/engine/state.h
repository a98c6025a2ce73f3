// The engine's insides, shared by its files only.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>

#include "server/engine/engine.h"
#include "server/jobs/search.h"

namespace wl {

using Clock = std::chrono::steady_clock;

// --- owned by the engine's thread

struct Search {
  SearchRow row;
  PlannedGroup group;
  Device device;
  std::unique_ptr<GroupCompiler> compiler;
  SearchInput input;
  std::vector<PhaseTrial> all;  // every stored trial of complete rounds and promotions
  std::vector<uint64_t> check_seeds;
  std::vector<Check> checks;  // the first one known to workers, the second only in promotions
  bool checks_asked = false;
  int64_t phase = 0;  // of the last promotion that was begun
  double budget_s = 0;
  double bound_ns = 0;              // no kernel of the group is faster
  std::string outstanding;          // id of the batch that is ready or leased
  std::vector<Trial> rejected;      // of that round
  std::optional<BatchRow> rebuild;  // open when the coordinator started
  bool exhausted = false;
  bool stop = false;                      // promote what there is
  bool cancelled = false;                 // and quickly
  bool gave_up_default = false;           // the default schedule is wrong: search for any that is right
  std::optional<KernelRecord> elsewhere;  // of the key under another environment: verified and timed before any search
  enum class End { kOpen, kRecord, kNothing } end = End::kOpen;
  std::set<int64_t> jobs;
};

struct ActiveJob {
  JobRow row;
  std::optional<JobPlan> plan;
  Records records;                          // known so far
  std::vector<KnownPlan> known;             // winners that the store had when the job came
  std::map<std::string, int64_t> wanted;    // trials by key
  std::map<std::string, int64_t> searches;  // by key
  std::set<std::string> searched;           // keys whose record this job made
  std::set<std::string> transferred;        // of these, those whose plan was found under another environment
  // Key of a fused group, and the key of a part of it that was looked at or a plan that won for one.
  std::set<std::pair<std::string, std::string>> looked;
  std::optional<Clock::time_point> deadline;
  Clock::time_point begun;
  bool stopping = false;  // budget over
  // Of a cover that measured times make another one.
  CoverPrices prices;
  std::optional<JobPlan> round;  // the first cover of the round that calls for something new, with the others' groups
  int covers_of_round = 0;
  int cover_rounds = 0;
  bool cover_certified = false;
  bool stable = false;    // the last round called for no new kernel
  bool refining = false;  // it is being chosen again
  bool refined = false;   // it is the best cover of what was measured
};

// --- under the lock

struct Outstanding {
  std::shared_ptr<Batch> batch;
  int64_t search_id = 0;
  Device device;
  // Smaller first: when the round is due (compiler/search/budget.h), older jobs first, heavy groups first.
  std::tuple<double, int64_t, double> order;
  enum class State { kReady, kLeasing, kLeased } state = State::kReady;
  std::string lease_id, worker;
  int64_t attempt = 0;
  Clock::time_point expires, moved;  // moved: when its progress last changed
  std::string progress;
};

struct View {
  Job job;
};

struct WorkerState {
  uint64_t epoch = 0;
  std::vector<Device> devices;
  Clock::time_point seen;
  int64_t seen_ms = 0;
  int waiting = 0;
};

struct Engine::Impl {
  Store* store;
  const Compiler* compiler;
  EngineOptions options;

  std::mutex mutex;
  std::condition_variable events_changed;  // engine thread waits
  std::condition_variable work_changed;    // acquire() waits
  std::condition_variable views_changed;   // watchers wait
  std::condition_variable pool_changed;
  std::deque<std::function<void()>> events;
  std::deque<std::function<void()>> pool_work;
  int computing = 0;  // events, steps and pool work that are queued or under way
  bool draining = false, leaving = false, stopping = false;
  bool recovering = true;        // reports of batches that are not known yet must come again
  std::set<int64_t> rebuilding;  // searches likewise
  // Alone: a search is read from the store. Shared: a report is judged and stored. So a search that is taken up has
  // either all trials of a batch or the batch still to come. Taken before `mutex`.
  std::shared_mutex taking_up;
  std::map<std::string, Outstanding> outstanding;
  std::set<std::string> cancelled;                 // lease ids
  std::map<int64_t, std::shared_ptr<View>> views;  // of jobs that are not done
  std::map<std::string, WorkerState> workers;
  uint64_t version = 0;
  std::thread thread;
  std::vector<std::thread> pool;

  // Engine thread only.
  std::map<int64_t, ActiveJob> jobs;
  std::map<int64_t, Search> searches;
  std::set<int64_t> dirty;

  // engine.cpp
  void post(std::function<void()> event);
  void mark(int64_t search_id);  // its step is due
  void compute(std::function<void()> work);
  void serve();
  void serve_pool();
  void recover(const std::vector<JobRow>& unfinished);
  void tick();
  absl::StatusOr<Device> device_for(const TuneOptions& asked);
  // engine_jobs.cpp
  void adopt(JobRow row, std::optional<JobPlan> plan);
  void plan_queued();
  void advance(int64_t job_id);
  absl::Status want_all(ActiveJob& job);
  absl::Status want(ActiveJob& job, const PlannedGroup& group, int64_t trials);
  absl::Status look_again(ActiveJob& job, const PlannedGroup& whole, const PlannedGroup& part);
  absl::StatusOr<Search> open(const SearchRow& row, const PlannedGroup& group, const Device& device,
                              const Machine& machine);
  void finish(ActiveJob& job, JobState state, absl::Status error);
  void stop_searches(ActiveJob& job, bool drop_leased);
  void publish(const ActiveJob& job);
  // From any thread: the store could not write. Ends every job that is not done with `status`, unless the next try may
  // succeed: nobody else would tell who waits.
  void note_write(const absl::Status& status);
  void forget(int64_t job_id, bool keep_view);
  absl::StatusOr<std::vector<KnownPlan>> known_plans(const JobRow& job);
  Records known_records(const JobPlan& plan, absl::Status* status);
  // engine_refine.cpp
  void refine(ActiveJob& job);
  void take_refined(int64_t job_id, absl::StatusOr<JobPlan> plan);
  // engine_search.cpp
  void step(Search& search);
  void ask_checks(Search& search);
  Standing standing(const Search& search) const;
  double due_of(const Search& search, const Round& round) const;
  absl::Status offer(Search& search, Round round, const std::optional<BatchRow>& known);
  absl::Status rebuild(Search& search);
  void on_trials(int64_t search_id, const std::string& batch_id, std::vector<Trial> trials);
  absl::Status conclude(Search& search);
  void end_search(Search& search, Search::End end);
  void fail_jobs_of(const Search& search, const absl::Status& status);
  bool drop(Search& search, bool leased_too);
  // engine_leases.cpp
  void expire();
  void requeue(const std::string& batch_id, const LeaseRef& lease, bool failed);
  bool alive(const WorkerState& worker) const;
  int workers_for(const Device& device);
  std::optional<LeaseGrant> take(const std::string& name, uint64_t epoch, std::unique_lock<std::mutex>& lock);
};

// A worker's device can do the job's: the same machine, its row or a narrower one of the family, the same compilers.
bool serves(const Device& worker, const Device& wanted);
// The device as `target` asks for it, or nothing.
std::optional<Device> device_as(const Device& device, const std::string& target);

}  // namespace wl

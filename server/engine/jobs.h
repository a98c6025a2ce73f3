// The jobs that are not done: which searches each of them needs, when it is done, and its state for clients.
//
// Owned by the engine's thread: there is no lock, and no function may be called from another thread unless its comment
// says so. Plans are made in the pool of the event loop.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "proto/log.h"
#include "server/engine/job_views.h"
#include "server/engine/races.h"
#include "server/engine/searches.h"
#include "server/jobs/in_place.h"
#include "server/jobs/wanted.h"
#include "server/jobs/whole.h"

namespace wl {

// After a job was cancelled, its promotions may go on for kPromotesFor. After its budget is over, they may go on for as
// long as the budget was, but for at least kPromotesFor and at most kMostPromotes.
constexpr auto kPromotesFor = std::chrono::seconds(5), kMostPromotes = std::chrono::seconds(30);

// Calls make_plan() for a job with `options`, which may name another cover than the job's own options do, and stores in
// the plan how many seconds the call took.
absl::StatusOr<JobPlan> timed_plan(const JobRow& row, const TuneOptions& options, const Compiler& compiler,
                                   const CoverPrices& prices, Work* work);

// A kernel that replaced another one, and the programs in which it is tried, with those that were timed so far.
struct InPlaceTrial {
  ReplacedRow row;
  Device device;
  KernelRecord before;  // the replaced record
  std::vector<std::pair<std::string, ProgramBatch>> programs;
  std::vector<TimedProgram> timed;
};

struct ActiveJob {
  JobRow row;
  std::string caller;  // name of the client that asked for the job; "": not known any more
  std::optional<JobPlan> plan;
  Records records;                          // records of the job's groups that are known so far, by key
  KnownPlans known;                         // winning plans that the store had when the job was created
  std::map<std::string, int64_t> needed;    // number of trials that the job needs of each group, by the group's key
  std::map<std::string, int64_t> searches;  // id of the search of each group, by the group's key
  std::set<std::string> searched;           // keys of the groups whose records this job made
  std::set<std::string> transferred;        // keys of the groups whose record has a plan from another environment
  // Pairs of a fused group's key and the key of one of its parts, or the part's winning plan translated to the group:
  // the plans that were considered for fused groups already, so that each is tried once.
  std::set<std::pair<std::string, std::string>> compared;
  std::optional<Clock::time_point> deadline;
  // When the job's promotions end; set once the job is cancelled or its budget is over.
  std::optional<Clock::time_point> promotes_until;
  Clock::time_point begun;
  Clock::time_point published;  // when the job's view was last published
  struct Planning {
    std::atomic<Clock::rep> begun = 0;  // when the pool began to plan the job, in ticks of Clock; 0: not yet
    bool noted = false;                 // whether the store has noted that planning takes long
  };
  std::shared_ptr<Planning> planning;  // the state of planning, while the job's plan is being made
  std::stop_source over;               // tells pool work for the job that its result is no longer needed
  bool stopping = false;  // whether the budget is over or nearly so: the job then ends with the kernels it has
  bool let_go = false;    // whether the job left its searches before they had ended

  // State of a job that verifies winners of other environments again (reverify/job.cpp). The groups of the job's plan
  // are the groups of these winners.
  struct Reverifying {
    struct Winner {
      ReverifiedRow row;
      std::string unusable;  // why the winner's plan cannot be tried; empty: it can
      bool cold = false;
      // Whether the winner's search was open when the coordinator started. If so, a worker may still hold a lease of
      // one of the search's batches.
      bool open = false;
    };
    std::vector<Winner> winners;
    size_t begun = 0;               // number of winners whose verification has begun
    std::set<std::string> settled;  // keys of the winners whose outcome is stored
  };
  std::optional<Reverifying> reverifying;
  // State of a job that tries a kernel in programs (demand/in_place.cpp); its plan is empty. Null: the job is another.
  std::shared_ptr<InPlaceTrial> in_place;

  // State of choosing the cover again with measured times (refine.cpp).
  CoverPrices prices;
  // The plan of one round of choosing covers: that of the round's first cover that needs new kernels. The new groups
  // of the round's other covers are added to this plan.
  std::optional<JobPlan> round;
  std::set<std::string> round_needs;  // keys of the groups in `round` that no launch runs
  int covers_of_round = 0;
  int cover_rounds = 0;
  bool cover_certified = false;
  bool stable = false;    // whether the last round of choosing a cover needed no new kernel
  bool refining = false;  // whether the pool is choosing the cover again
  bool refined = false;   // whether the cover is the best one that measured kernels allow

  // Whether kernels of the last cover are needed, since launches of groups without a kernel could not be replaced.
  bool last_cover = false;
  // State of timing the job's cover as a whole against simpler covers (whole/job.cpp).
  struct Whole {
    bool planning = false;  // whether the pool was asked to plan the simpler covers
    // Names and plans of the simpler covers, without those that are left out.
    std::optional<std::vector<std::pair<std::string, JobPlan>>> simpler;
    bool weighed = false;  // whether covers with slow default schedules were left out
    bool decided = false;
    std::vector<TimedCover> left_out;  // the covers that are not searched, each with the reason
    std::vector<TimedCover> timed;     // the covers compared, with their times; empty: there was nothing to compare
  };
  Whole whole;
};

// Returns the progress of a job that has a plan (progress.cpp).
JobProgress progress_of(const ActiveJob& job, const Searches& searches);

class Jobs : public SearchObserver {
 public:
  // All pointers must outlive the object. `recovered` is called once, as soon as all searches are known that were open
  // when the coordinator started. `winners_verified` is called when a job that verifies winners again has succeeded,
  // with the job's device and team.
  Jobs(Store* store, const Compiler* compiler, EventLoop* loop, Workers* workers, JobViews* views, Searches* searches,
       Races* races, std::function<void()> recovered, const EngineOptions& options,
       std::function<void(const Device& device, const std::string& team)> winners_verified)
      : store_(store),
        compiler_(compiler),
        loop_(loop),
        workers_(workers),
        views_(views),
        searches_(searches),
        races_(races),
        recovered_(std::move(recovered)),
        options_(options),
        winners_verified_(std::move(winners_verified)) {}

  void recover(std::vector<JobRow> rows);  // Takes up the jobs that were not done when the coordinator started.
  // Takes up a job; called again for a job that had no device so far. `plan`: the job's plan, if it was made already.
  // `caller`: the client's name, by which callers take turns; "": not known any more.
  void adopt(JobRow row, std::optional<JobPlan> plan, const std::string& caller = "");
  // Begins a job that tries a kernel in programs. `row`: stored, with an empty graph.
  void try_in_place(JobRow row, std::shared_ptr<InPlaceTrial> trial);
  void plan_queued();  // Called when a worker has registered: plans the jobs that had no device so far.
  // Called when the store could not register a worker with these devices. Jobs that have no other worker fail with
  // `why`, since their clients would not hear of the problem otherwise.
  void worker_refused(const std::vector<Device>& devices, const absl::Status& why);
  void cancel(int64_t id);
  std::optional<JobRow> row_of(int64_t id) const;  // nullopt: the job is done, or not taken up yet
  std::vector<Device> devices_in_use() const;      // the devices of all jobs that are not done
  void on_race(int64_t id);                        // Called when a race that the job waits for has ended.
  void tick();  // Checks budgets, ends jobs that no worker can finish, and publishes views.

  void on_round(const Search& search) override;
  void on_record(const Search& search, const KernelRecord& record, Origin origin) override;
  void on_interim(const Search& search) override;
  void on_lost(const Search& search) override;
  void on_end(const Search& search) override;
  void on_failure(const Search& search, const absl::Status& status) override;
  std::string trace_of(const Search& search) const override;

 private:
  using MadePlan = std::shared_ptr<absl::StatusOr<JobPlan>>;
  using TakePlan = void (Jobs::*)(int64_t id, absl::StatusOr<JobPlan> plan);
  // Defined in planning.cpp:
  void make_plan_of(ActiveJob& job);
  // Runs `work` in the pool for graphs of the job's size.
  void plan_beside(const ActiveJob& job, std::function<void()> work);
  void take_found(const JobRow& row, const MadePlan& plan, TakePlan take);
  void note_long_planning(ActiveJob& job);
  // Defined in jobs.cpp, except why_none() and why_unfinished(), which are in needs.cpp:
  void take_plan(int64_t id, absl::StatusOr<JobPlan> plan);
  std::function<absl::Status()> waiting_for_job(const ActiveJob& job) const;
  // Whether planning was given up only because the coordinator is stopping; the restarted coordinator makes the plan.
  bool was_left(const absl::Status& planned) const { return absl::IsCancelled(planned) && loop_->leaving(); }
  void taken_up(int64_t id);
  absl::Status begin(ActiveJob& job);
  void tick(ActiveJob& job);
  bool busy(const ActiveJob& job) const;
  void advance(int64_t job_id);
  absl::Status need_parts_in_use(ActiveJob& job, const std::vector<Chosen>& launches);
  void finish(ActiveJob& job, JobState state, absl::Status error);
  std::string why_none(const ActiveJob& job) const;
  absl::Status why_unfinished(const ActiveJob& job) const;
  void stop_searches(ActiveJob& job, bool leased_too);
  void let_go(ActiveJob& job);
  bool goes_on(int64_t id) const;
  // Defined in needs.cpp:
  absl::StatusOr<KnownPlans> known_plans(const JobRow& job);
  static std::set<std::string> promising_groups(const ActiveJob& job);
  absl::StatusOr<bool> need_wanted(ActiveJob& job);
  absl::Status need(ActiveJob& job, const PlannedGroup& group, int64_t trials);
  absl::Status need_search(ActiveJob& job, const PlannedGroup& group, int64_t trials, Search& search,
                           std::optional<RecordRow> record);
  absl::Status try_plan_of_part(ActiveJob& job, const PlannedGroup& whole, const PlannedGroup& part);
  // Defined in reverify/job.cpp:
  void plan_winners(const ActiveJob& job);
  void advance_reverifying(ActiveJob& job);
  absl::Status begin_winners(ActiveJob& job);
  absl::Status begin_winner(ActiveJob& job, const ActiveJob::Reverifying::Winner& winner);
  absl::Status settle_ended(ActiveJob& job);
  absl::Status settle(ActiveJob& job, const std::string& key, const std::string& why);
  bool others_wait(const ActiveJob& job) const;
  void lose(ActiveJob& job, const std::string& key, const absl::Status& why);
  // Defined in demand/in_place.cpp:
  void advance_in_place(ActiveJob& job);
  absl::Status end_in_place(const ActiveJob& job, const InPlaceVerdict& verdict);
  // Defined in refine.cpp:
  void refine(ActiveJob& job);
  void take_refined(int64_t job_id, absl::StatusOr<JobPlan> plan);
  // Defined in whole/job.cpp:
  using Simpler = std::vector<std::pair<std::string, JobPlan>>;
  absl::StatusOr<bool> decide_whole(ActiveJob& job);
  void plan_simpler(ActiveJob& job, std::vector<std::string> names);
  void take_simpler(int64_t job_id, absl::StatusOr<Simpler> simpler);
  bool never_timed_whole(const ActiveJob& job) const;
  absl::StatusOr<bool> race_covers(ActiveJob& job);
  static void choose_by_kernels(ActiveJob& job);
  absl::Status weigh_covers(ActiveJob& job);
  absl::Status need_simpler(ActiveJob& job, int64_t trials);
  absl::Status need_contenders(ActiveJob& job, const std::vector<WholeCover>& covers,
                               const std::vector<TimedCover>& timed);
  // Publishes the job's present state to the clients that watch it (progress.cpp).
  void publish(ActiveJob& job);

  Store* const store_;
  const Compiler* const compiler_;
  EventLoop* const loop_;
  Workers* const workers_;
  JobViews* const views_;
  Searches* const searches_;
  Races* const races_;
  const std::function<void()> recovered_;
  const EngineOptions& options_;
  const std::function<void(const Device& device, const std::string& team)> winners_verified_;
  std::map<int64_t, ActiveJob> jobs_;  // the jobs that are not done, by job id
  // Ids of the jobs that were not done when the coordinator started and are not taken up yet.
  std::set<int64_t> recovering_;
};

// Returns a function by which a Work (compiler/base/work.h) learns whether a job's plan is still needed. That function
// returns Cancelled if `gone` returned true or the coordinator is stopping, DeadlineExceeded if the end of the budget,
// `over`, has passed, and otherwise OK. `loop` must outlive it.
std::function<absl::Status()> waiting_for(const TuneOptions& asked, std::optional<Clock::time_point> over,
                                          const EventLoop& loop, std::function<bool()> gone);

LogFields fields_of(const JobRow& row);  // returns the fields of a log line about a job

// Returns the records of the plan's groups that the store has for a team.
absl::StatusOr<Records> known_records(Store& store, const JobPlan& plan, const std::string& team);

// Asks the upstream for records of the plan's groups that the store lacks, unless the job searches anew (--retune), and
// calls `done` as the functions of Elsewhere do. Thread-safe.
void find_missing(Store& store, const Elsewhere& elsewhere, const JobPlan& plan, const JobRow& job,
                  const Elsewhere::Done& done);

}  // namespace wl

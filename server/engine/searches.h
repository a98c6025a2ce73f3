// The live searches: a search turns rounds into batches, reports into trials, and a promotion into the record of its
// key. Its state can be derived from the store, so a restarted coordinator continues it.
//
// Owned by the engine's thread: no lock, and no function may be called from another thread. Work that takes time
// (opening a group's space, the oracle, proposals and their code) runs in the pool of the event loop on copies of its
// inputs, one task per search at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "server/engine/leases.h"
#include "server/jobs/confirm.h"

namespace wl {

using KnownPlans = std::shared_ptr<const std::vector<KnownPlan>>;

struct Search {
  SearchRow row;
  uint64_t token = 0;  // identifies this Search object, because a later object may continue the same row of the store
  PlannedGroup group;
  Device device;
  Machine machine;
  KnownPlans known;                               // winners whose plans may suit the group
  std::optional<KnownPlan> winner;                // the plan of the search's last record
  bool predicts = false;                          // whether a job wants kernels that are predicted, without a search
  bool waits = false;                             // whether the search waits for searches of its kin (waits_for_kin())
  std::shared_ptr<const GroupCompiler> compiler;  // the group's compiler, shared with pool tasks; null before set_up()
  SearchInput input;
  Tally tally;                  // sums over the trials in input.trials
  double saving = 0;            // nanoseconds that the next round is expected to save (compiler/search/budget.h)
  std::vector<PhaseTrial> all;  // all stored trials, also of promotions and confirmations
  std::vector<uint64_t> check_seeds;
  // The checks of the search: workers get the first with every batch, and the second only with promotions.
  std::vector<Check> checks;
  // The unpredictable check seeds, by phase, of the promotions and confirmations that this process has offered, or
  // whose trials were not concluded when it started.
  std::map<int64_t, uint64_t> seeds_of;
  int64_t phase = 0;         // phase of the last promotion that was begun
  bool unconcluded = false;  // whether the store has the promotion's trials, but their consequence is not decided yet
  Clock::time_point taken_up = Clock::now();
  // When the fastest kernel of the search's rounds was reported; nullopt: no kernel is correct yet, or the store
  // already had trials of the search when it was taken up.
  std::optional<Clock::time_point> best_at;
  bool timed = false;  // whether the time until the best kernel was told to the metrics, or can never be told
  double budget_s = 0;
  double bound_ns = 0;    // lower bound in ns of the kernel's time, by nominal rates of the machine
  double floor_ns = 0;    // lower bound in ns by peak rates: a measured time below it counts as an error
  bool cold = false;      // whether kernels are timed with cold caches, which is part of the key
  int64_t at_once = 0;    // number of rounds measured at once; 0: it follows from the numbers of workers and searches
  bool working = false;   // whether the pool is running a task of this search
  bool building = false;  // whether the task that the pool is running compiles the kernel to be promoted
  struct OpenBatch {
    // The batch's phase: 0 for a round, n for the n-th promotion, more for its confirmations (PhaseTrial::phase).
    int64_t phase = 0;
    std::vector<PlannedTrial> candidates;
  };
  std::map<std::string, OpenBatch> open;  // the batches that are ready or leased, by id
  std::optional<BatchRow> preparing;      // the stored batch whose candidates are being generated
  std::vector<BatchRow> restored;  // batches that were open when the search was taken up, until they are offered again
  bool exhausted = false;
  bool stop = false;       // whether rounds are over; the best plans so far are then promoted
  bool cancelled = false;  // whether rounds are over because a job was cancelled: only two finalists are promoted
  bool interim = false;    // whether the best plans so far are to be promoted, after which rounds go on
  // Plans on whose promotion two workers disagreed, without a third worker to decide.
  std::set<std::string> disputed;
  std::string dispute;                 // the last dispute between workers, as a text for people
  std::map<std::string, Built> built;  // results of this coordinator's own compilers for finalists, by plan
  std::string default_plan;            // plan of the default schedule in the last promotion
  // Whether all finalists are disputed: then the default schedule is served, as this coordinator builds it.
  bool settle = false;
  std::set<std::string> refuted;  // principals that were refuted or revoked, which get no more batches of the search
  bool gave_up_default = false;   // whether no promoted kernel was correct; rounds then look for any correct kernel
  // The key's record under another environment, which is verified and timed before any round.
  std::optional<KernelRecord> elsewhere;
  // whether only jobs that verify records again, or that may wait (TuneOptions::background), need the search; its
  // batches then have the lowest priority
  bool background = false;
  enum class End { kOpen, kRecord, kNothing } end = End::kOpen;
  std::set<int64_t> jobs;  // ids of the jobs that need the search
  // Stopped once nobody needs a kernel of the group: ends the pool's task that makes a check, which may take seconds.
  std::stop_source over;
  bool promoting() const { return !open.empty() && open.begin()->second.phase > 0; }
};

// Returns the figures by which rounds are divided among searches (compiler/search/budget.h).
Standing standing(const Search& search);

// What searches report to the jobs. Called on the engine's thread.
class SearchObserver {
 public:
  enum class Origin { kKnown, kSearched, kTransferred };
  virtual ~SearchObserver() = default;
  virtual void on_round(const Search& search) = 0;  // called when the trials of a round were reported
  virtual void on_record(const Search& search, const KernelRecord& record, Origin origin) = 0;
  // Called when the search has promoted its best plans so far, if any kernel is correct; the search goes on.
  virtual void on_interim(const Search& search) = 0;
  // Called when the plan of another environment's record computes wrong values in this environment, or cannot be
  // generated. The search goes on; the callee may end jobs and thereby delete the search.
  virtual void on_lost(const Search& search) = 0;
  // Called when the search has ended. The callee may end jobs and thereby delete the search.
  virtual void on_end(const Search& search) = 0;
  virtual void on_failure(const Search& search, const absl::Status& status) = 0;
  // Returns the trace id of the oldest job that needs the search.
  virtual std::string trace_of(const Search& search) const = 0;
};

class Searches {
 public:
  // All pointers must outlive the object.
  Searches(Store* store, const Compiler* compiler, EventLoop* loop, Leases* leases, const Workers* workers,
           SearchObserver* observer, const EngineOptions& options)
      : store_(store),
        compiler_(compiler),
        loop_(loop),
        leases_(leases),
        workers_(workers),
        observer_(observer),
        options_(options) {}

  // Returns the live search of this row, which is read from the store if it is not live yet. `known`: winners whose
  // plans may suit the group.
  absl::StatusOr<Search*> take_up(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                  const Machine& machine, const KnownPlans& known);
  Search* find(int64_t id);
  Search& at(int64_t id) { return searches_.at(id); }
  const Search& at(int64_t id) const { return searches_.at(id); }

  void mark(const Search& search) { loop_->mark(search.row.id); }  // makes the search's step due
  // Makes due the step of each search that may have more rounds measured at once than it has now. Ends confirmations
  // for which no worker is left.
  void tick();
  void step(int64_t id);
  void on_trials(int64_t id, const std::string& batch_id, const std::vector<Trial>& trials, const std::string& worker);
  void on_split(int64_t id, const std::string& batch_id, const std::vector<BatchRow>& parts);
  void on_store_failure(int64_t id, const absl::Status& status);
  // Removes the principal's trials from all live searches, which give it no more batches.
  void revoke(const std::string& principal);
  // Ends the rounds of a search and promotes its best plans so far. `leased_too`: also takes back rounds that workers
  // are measuring, whose trials are then lost.
  void stop(Search& search, bool cancelled, bool leased_too);
  void promote_interim(Search& search);  // Promotes the best plans so far, then goes on for other jobs.
  // Says that a job that may not wait needs the search, which is then no background search any more.
  void needed_now(Search& search);
  void leave(int64_t job_id);              // Removes the job from all searches. Searches without jobs are dropped.
  void leave(int64_t job_id, int64_t id);  // Removes the job from one search.

 private:
  // Defined in search/kin.cpp:
  bool waits_for_kin(const Search& search) const;
  KnownPlans with_winners_of_kin(const Search& search) const;
  KnownPlans only_of_kin(const Search& search) const;
  void mark_waiting();
  // Defined in search/searches.cpp:
  void set_up(Search& search);
  void next(Search& search);
  void finish(Search& search, Search::End end);
  TeamRules rules_of(const Search& search) const;
  void note_best(Search& search, double before_ns);
  void drop_unneeded(std::map<int64_t, Search>::iterator at);
  std::optional<int64_t> take_open(Search& search, const std::string& batch_id);
  // Defined in promote/promotions.cpp:
  void conclude_stored(Search& search);
  absl::Status conclude(Search& search, bool may_ask);
  absl::Status take_finals(Search& search, const std::optional<KernelRecord>& record, bool transferred, bool goes_on);
  absl::Status promote(const Search& search, const KernelRecord& record);
  absl::Status take_record(Search& search, const KernelRecord& record, bool transferred);
  // Defined in promote/confirmations.cpp:
  enum class Confirmed { kYes, kAsked, kRefuted, kDisputed };
  Confirmed confirmed(Search& search, const std::vector<PhaseTrial>& finals, KernelRecord& record, bool may_ask);
  bool somebody_is_left(const Search& search, const std::vector<Claim>& claims) const;
  bool refutes_promoter(Search& search, const std::string& what, const std::vector<Claim>& claims, size_t first,
                        size_t second);
  Confirmed dispute(Search& search, const KernelRecord& record, std::string what, std::string remedy);
  // Defined in promote/builds.cpp:
  bool awaits_build(Search& search, const KernelRecord& record, bool may_ask);
  void on_built(Search& search, bool may_ask);
  static std::optional<std::string> drop_foreign_objects(Search& search, const KernelRecord& record,
                                                         std::vector<Claim>* claims);
  static bool is_built_here(const Search& search, const KernelRecord& record);
  static bool may_settle(const Search& search);
  // Defined in promote/confirmations.cpp:
  static void take_confirmed(const Search& search, const Claim& first, const Claim& second, KernelRecord* record);
  void ask(Search& search, const std::vector<PhaseTrial>& finals, const KernelRecord& record);
  void refute(Search& search, const std::string& principal);
  void confirm_no_longer(Search& search);
  // Adds the worker's principal and machine to a set.
  void add_kin(const std::string& worker, std::set<std::string>* principals) const;
  std::set<std::string> never_by(const Search& search, const BatchRow& row) const;
  // Defined in search/rounds.cpp, except find(), which is in search/searches.cpp:
  std::function<absl::Status()> needed(const Search& search) const;
  void leave_undone(Search& search);
  using MakeRound = std::function<absl::StatusOr<Round>(const SearchInput&)>;
  void prepare(Search& search, MakeRound make, const std::optional<BatchRow>& stored);
  Search* find(int64_t id, uint64_t token);
  void on_prepared(int64_t id, uint64_t token, absl::StatusOr<Round> made, const std::optional<BatchRow>& stored);
  absl::Status offer(Search& search, Round round, const std::optional<BatchRow>& stored);
  double due_of(const Search& search, const BatchRow& row) const;
  int64_t most_rounds(const Search& search);
  void take_back(Search& search, bool leased_too);

  Store* const store_;
  const Compiler* const compiler_;
  EventLoop* const loop_;
  Leases* const leases_;
  const Workers* const workers_;
  SearchObserver* const observer_;
  const EngineOptions& options_;
  std::map<int64_t, Search> searches_;  // the live searches, by search id
  uint64_t last_token_ = 0;
  bool said_why_not_built_ = false;
  // Results of most_rounds() since the last tick, by class of device.
  std::map<std::string, int64_t> rounds_each_;
};

// Adds a trial to the search; input.trials stays in the order of trial numbers.
void add_trial(Search& search, const PhaseTrial& trial);
uint64_t unpredictable();  // returns a check seed that no worker can know before it gets the batch

}  // namespace wl

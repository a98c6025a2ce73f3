// The live searches: a search turns rounds into batches, reports into trials and a promotion into the record of its
// key. What it knows can be derived from what the store has, so a restarted coordinator goes on where it was.
//
// Owned by the engine's thread: no lock, and no function may be called from another thread. What takes time (opening a
// group's space, the oracle, proposals and their code) runs in the pool of the event loop, one task of a search at a
// time, on copies of what it needs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/leases.h"
#include "server/jobs/confirm.h"

namespace wl {

using KnownPlans = std::shared_ptr<const std::vector<KnownPlan>>;

struct Search {
  SearchRow row;
  uint64_t token = 0;  // of this object: the row of a search that was dropped may be taken up again
  PlannedGroup group;
  Device device;
  Machine machine;
  KnownPlans known;                               // records whose plans may suit it; until it is set up
  std::shared_ptr<const GroupCompiler> compiler;  // once it is set up; tasks of the pool share it
  SearchInput input;
  Tally tally;                  // of input.trials
  double saving = 0;            // what the next round is expected to save (compiler/search/budget.h)
  std::vector<PhaseTrial> all;  // every stored trial, promotions too
  std::vector<uint64_t> check_seeds;
  std::vector<Check> checks;             // the first one is known to workers, the second only in promotions
  std::map<int64_t, uint64_t> seeds_of;  // the unpredictable seeds of promotions and confirmations, by phase; of those
                                         // that this process has offered
  int64_t phase = 0;                     // of the last promotion that was begun
  bool unconcluded = false;              // the store has its trials, and nothing has followed from them yet
  Clock::time_point taken_up = Clock::now();
  // When its rounds had the fastest kernel so far; nothing: they have none that is right, or the search began before
  // this process.
  std::optional<Clock::time_point> best_at;
  bool timed = false;  // it has said how long that took
  double budget_s = 0;
  double bound_ns = 0;    // by nominal rates, no kernel of the group is faster
  double floor_ns = 0;    // by peaks: what is faster is not believed
  bool cold = false;      // kernels are timed with cold caches; part of the key
  int64_t at_once = 0;    // rounds that are measured at once; 0: as many as there are workers for it
  bool working = false;   // the pool has a task of this search
  bool building = false;  // which compiles what is to be promoted
  struct OpenBatch {
    int64_t phase = 0;  // 0: of a round of the search; n: of the n-th promotion
    std::vector<PlannedTrial> candidates;
  };
  std::map<std::string, OpenBatch> open;  // what is ready or leased, by the id of the batch
  std::optional<BatchRow> preparing;      // of these, the one whose candidates are being made
  std::vector<BatchRow> restored;         // what was when the coordinator started, until it is offered again
  bool exhausted = false;
  bool stop = false;                      // promote what there is
  bool cancelled = false;                 // and promote few
  bool interim = false;                   // promote what there is, and go on
  std::set<std::string> disputed;         // plans on whose promotion two workers did not agree, and no third decided
  std::string dispute;                    // the last such, for people
  std::map<std::string, Built> built;     // what this coordinator makes of finalists, by plan
  std::string default_plan;               // of its promotion
  bool settle = false;                    // nothing is agreed on: the default schedule as it is built here will do
  std::set<std::string> refuted;          // principals whose promotions two others refuted: they get no batch of it
  bool gave_up_default = false;           // the default schedule is wrong: search for any that is right
  std::optional<KernelRecord> elsewhere;  // of the key under another environment: verified and timed before any search
  bool background = false;                // only jobs want it that verify winners again: no search follows that
  enum class End { kOpen, kRecord, kNothing } end = End::kOpen;
  std::set<int64_t> jobs;  // that want it
  bool promoting() const { return !open.empty() && open.begin()->second.phase > 0; }
};

// What dealing out rounds goes by.
Standing standing(const Search& search);

// What the searches tell the jobs, on the engine's thread.
class SearchObserver {
 public:
  enum class Origin { kKnown, kSearched, kTransferred };
  virtual ~SearchObserver() = default;
  virtual void on_round(const Search& search) = 0;  // the trials of a batch came in
  virtual void on_record(const Search& search, const KernelRecord& record, Origin origin) = 0;
  virtual void on_interim(const Search& search) = 0;  // it has promoted what it had, if that was right, and goes on
  // The plan of another environment is wrong here, or cannot be made. It goes on; may end jobs and with them the
  // search.
  virtual void on_lost(const Search& search) = 0;
  virtual void on_end(const Search& search) = 0;  // may end jobs and with them the search
  virtual void on_failure(const Search& search, const absl::Status& status) = 0;
  virtual std::string trace_of(const Search& search) const = 0;  // of the oldest job that wants it
};

class Searches {
 public:
  // All must outlive the searches.
  Searches(Store* store, const Compiler* compiler, EventLoop* loop, Leases* leases, const Workers* workers,
           SearchObserver* observer, const EngineOptions& options)
      : store_(store),
        compiler_(compiler),
        loop_(loop),
        leases_(leases),
        workers_(workers),
        observer_(observer),
        options_(options) {}

  // The live search of this row, read from the store if it is not live yet. `known`: records whose plans may suit it.
  absl::StatusOr<Search*> take_up(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                  const Machine& machine, const KnownPlans& known);
  Search* find(int64_t id);
  Search& at(int64_t id) { return searches_.at(id); }
  const Search& at(int64_t id) const { return searches_.at(id); }

  void mark(const Search& search) { loop_->mark(search.row.id); }  // its step is due
  void tick();  // Marks the searches that may have more rounds at once than they have.
  void step(int64_t id);
  void on_trials(int64_t id, const std::string& batch_id, const std::vector<Trial>& trials, const std::string& worker);
  void on_split(int64_t id, const std::string& batch_id, const std::vector<BatchRow>& parts);
  void on_store_failure(int64_t id, const absl::Status& status);
  void revoke(const std::string& principal);  // No live search uses anything of it, or gives it any more.
  // Promotes what there is. `leased_too`: although workers are at rounds, whose trials are then lost.
  void stop(Search& search, bool cancelled, bool leased_too);
  void promote_interim(Search& search);    // Promotes what there is and goes on, for other jobs.
  void wanted_now(Search& search);         // A job waits for it: it is no background search any more.
  void leave(int64_t job_id);              // The job wants none of them any more. Those that nobody wants are dropped.
  void leave(int64_t job_id, int64_t id);  // The same for one of them.

 private:
  // searches.cpp
  void set_up(Search& search);
  void next(Search& search);
  void finish(Search& search, Search::End end);
  TeamRules rules_of(const Search& search) const;
  void note_best(Search& search, double before_ns);
  void drop_unwanted(std::map<int64_t, Search>::iterator at);
  std::optional<int64_t> take_open(Search& search, const std::string& batch_id);
  // promotions.cpp
  void conclude_stored(Search& search);
  absl::Status conclude(Search& search, bool may_ask);
  absl::Status take_finals(Search& search, const std::optional<KernelRecord>& record, bool transferred, bool goes_on);
  absl::Status promote(const Search& search, const KernelRecord& record);
  absl::Status take_record(Search& search, const KernelRecord& record, bool transferred);
  // confirmations.cpp
  enum class Confirmed { kYes, kAsked, kRefuted, kDisputed };
  Confirmed confirmed(Search& search, const std::vector<PhaseTrial>& finals, KernelRecord& record, bool may_ask);
  bool somebody_is_left(const Search& search, const std::vector<Claim>& claims) const;
  bool refutes_promoter(Search& search, const std::string& what, const std::vector<Claim>& claims, size_t first,
                        size_t second);
  Confirmed dispute(Search& search, const KernelRecord& record, std::string what, std::string remedy);
  // builds.cpp
  bool awaits_build(Search& search, const KernelRecord& record, bool may_ask);
  void on_built(Search& search, bool may_ask);
  static std::optional<std::string> drop_foreign_objects(Search& search, const KernelRecord& record,
                                                         std::vector<Claim>* claims);
  static bool is_built_here(const Search& search, const KernelRecord& record);
  static bool may_settle(const Search& search);
  static void take_confirmed(const Search& search, const Claim& first, const Claim& second, KernelRecord* record);
  void ask(Search& search, const std::vector<PhaseTrial>& finals, const KernelRecord& record);
  void refute(Search& search, const std::string& principal);
  void confirm_no_longer(Search& search);
  void add_kin(const std::string& worker, std::set<std::string>* principals) const;  // its principal and its machine
  std::set<std::string> never_by(const Search& search, const BatchRow& row) const;
  // rounds.cpp
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
  std::map<int64_t, Search> searches_;  // by id
  uint64_t last_token_ = 0;
  bool said_why_not_built_ = false;
  std::map<std::string, int64_t> rounds_each_;  // most_rounds() by device, since the last tick
};

// Adds a trial to what the search knows, in the order of numbers.
void add_trial(Search& search, const PhaseTrial& trial);
uint64_t unpredictable();  // a seed that no worker can know before it has the batch

}  // namespace wl

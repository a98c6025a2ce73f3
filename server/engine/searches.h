// The live searches: a search turns rounds into batches, reports into trials and a promotion into the record of its
// key. What it knows can be derived from the trials in the store, so a restarted coordinator goes on where it was.
//
// Owned by the engine's thread: no lock, and no function may be called from another thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/leases.h"
#include "server/jobs/search.h"

namespace wl {

struct Search {
  SearchRow row;
  PlannedGroup group;
  Device device;
  std::unique_ptr<GroupCompiler> compiler;
  SearchInput input;
  std::vector<PhaseTrial> all;  // every stored trial of complete rounds and promotions
  std::vector<uint64_t> check_seeds;
  std::vector<Check> checks;  // the first one is known to workers, the second only in promotions
  bool checks_asked = false;
  int64_t phase = 0;  // of the last promotion that was begun
  double budget_s = 0;
  double bound_ns = 0;  // no kernel of the group is faster
  bool cold = false;    // kernels are timed with cold caches; part of the key
  struct OpenRound {
    std::string batch_id;
    int64_t phase = 0;            // 0: a round of the search; n: the n-th promotion
    std::vector<Trial> rejected;  // candidates that lowering refused
  };
  std::optional<OpenRound> open;    // its batch is ready or leased
  std::optional<BatchRow> rebuild;  // the round that was open when the coordinator started
  bool exhausted = false;
  bool stop = false;                      // promote what there is
  bool cancelled = false;                 // and promote few
  bool gave_up_default = false;           // the default schedule is wrong: search for any that is right
  std::optional<KernelRecord> elsewhere;  // of the key under another environment: verified and timed before any search
  enum class End { kOpen, kRecord, kNothing } end = End::kOpen;
  std::set<int64_t> jobs;  // that want it
  bool searching() const { return open && open->phase == 0; }
  bool promoting() const { return open && open->phase > 0; }
};

// What dealing out rounds goes by.
Standing standing(const Search& search);

// What the searches tell the jobs, on the engine's thread.
class SearchObserver {
 public:
  enum class Origin { kKnown, kSearched, kTransferred };
  virtual ~SearchObserver() = default;
  virtual void on_round(const Search& search) = 0;  // the trials of a round came in
  virtual void on_record(const Search& search, const KernelRecord& record, Origin origin) = 0;
  virtual void on_end(const Search& search) = 0;  // may end jobs and with them the search
  virtual void on_failure(const Search& search, const absl::Status& status) = 0;
};

class Searches {
 public:
  // All must outlive the searches.
  Searches(Store* store, const Compiler* compiler, EventLoop* loop, Leases* leases, SearchObserver* observer)
      : store_(store), compiler_(compiler), loop_(loop), leases_(leases), observer_(observer) {}

  // The live search of this row, read from the store if it is not live yet. `known`: records whose plans may suit it.
  absl::StatusOr<Search*> take_up(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                  const Machine& machine, const std::vector<KnownPlan>& known);
  Search* find(int64_t id);
  Search& at(int64_t id) { return searches_.at(id); }
  const Search& at(int64_t id) const { return searches_.at(id); }

  void mark(const Search& search) { loop_->mark(search.row.id); }  // its step is due
  void step(int64_t id);
  void on_trials(int64_t id, const std::string& batch_id, std::vector<Trial> trials);
  // Promotes what there is. `leased_too`: although a worker is at a round, whose trials are then lost.
  void stop(Search& search, bool cancelled, bool leased_too);
  void abandon(Search& search);  // Ends it with nothing, for nobody is there to measure.
  void leave(int64_t job_id);    // The job wants none of them any more. Those that nobody wants are dropped.

 private:
  // searches.cpp
  absl::StatusOr<Search> open(const SearchRow& row, const PlannedGroup& group, const Device& device,
                              const Machine& machine);
  void ask_checks(Search& search);
  absl::StatusOr<bool> next(Search& search);
  absl::Status conclude(Search& search);
  absl::Status take_record(Search& search, const KernelRecord& record, bool transferred);
  void finish(Search& search, Search::End end);
  // rounds.cpp
  double due_of(const Search& search, const Round& round) const;
  absl::Status offer(Search& search, Round round, const std::optional<BatchRow>& known);
  absl::Status rebuild(Search& search);
  bool drop(Search& search, bool leased_too);

  Store* const store_;
  const Compiler* const compiler_;
  EventLoop* const loop_;
  Leases* const leases_;
  SearchObserver* const observer_;
  std::map<int64_t, Search> searches_;  // by id
};

}  // namespace wl

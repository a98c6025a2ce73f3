// The batches that are ready or leased, with the deadlines of their leases. A batch is leased in the store before it is
// given to a worker, and the store decides which report counts, so a crash that loses this object's state does no harm.
//
// All functions may be called from any thread. The lock guards the maps and flags only: it is released around SQL, and
// the callbacks run without it. See impl.h for the order of locks.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "compiler/base/records.h"
#include "server/engine/bounds/overdue.h"
#include "server/engine/engine.h"
#include "server/engine/event_loop.h"
#include "server/engine/lease_ends.h"
#include "server/engine/ready_queue.h"
#include "server/engine/workers.h"

namespace wl {

// A batch to be measured.
struct Offer {
  std::shared_ptr<const Batch> batch;
  int64_t search_id = 0;
  Device device;
  // Batches with a smaller order are given out first. The order consists of the time when the round is due
  // (compiler/search/budget.h), the job's id (older jobs first), and the group's launches x bytes with a minus sign
  // (heavy groups first).
  ReadyQueue::Order order;
  // The batch's row in the store. A lease that the batch had when the coordinator started gets a full new term.
  BatchRow row;
  std::set<std::string> not_by;  // principals and machines (on_machine()) whose workers never get the batch
  // Trials with a sample below this time become errors (compiler/model/roofline.h); 0: no limit.
  double floor_ns = 0;
  std::string team = {};  // team for which the search runs
  TeamRules rules = {};   // rules by which batches of the team are ordered
};

struct LeaseCallbacks {
  // Called when the trials of a batch were stored, before the batch leaves this object. `worker`: the process that
  // reported the trials (NAME#EPOCH); empty: the batch was given up.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials,
                     const std::string& worker)>
      stored;
  // Called when a batch was split and its parts have replaced it, before a worker can get one of the parts.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<BatchRow>& parts)> split;
  std::function<void(LeaseEnd why)> ended = [](LeaseEnd) {};  // called when a lease has ended without a report
  // Called when the store could not write a change of a batch of this search.
  std::function<void(int64_t search_id, const absl::Status& status)> store_failed;
};

// Returns the trials that a report on the batch must have: one for each chain (cover timed as a whole) if the batch has
// chains, else one for each candidate.
std::vector<PlannedTrial> reported_of(const Batch& batch);
// Returns the trial (kRuntimeError) of a candidate or chain that was not measured.
Trial failed_trial(const PlannedTrial& of, std::string message);

// Whether an error of the store will occur again if the operation is repeated: disk full, no permission, damage.
bool lasts(const absl::Status& status);

class Leases {
 public:
  struct Owned {
    std::string batch_id;
    LeaseRef lease;
  };

  // `term`: a lease ends when it is not renewed for this time. `stuck`: a lease is lost after this time without
  // progress, even if renewed. `patience_s`: as in EngineSettings. `quiet_while_busy`: no lease is given while the
  // event loop is busy. All pointers must outlive the object.
  Leases(Store* store, Workers* workers, const EventLoop* loop, Clock::duration term, Clock::duration stuck,
         double patience_s, bool quiet_while_busy, LeaseCallbacks callbacks);

  // --- Functions for searches
  void offer(Offer offer);
  // Takes back a batch that was not reported yet, also in the store; with `leased_too` even if a worker has begun with
  // it. Cancels the lease, if there is one. Returns false if the batch was reported already, or if a worker has begun
  // with it and `leased_too` is false.
  // `known_lease`: the lease, if any, of a batch that was not offered yet.
  bool take_back(const std::string& batch_id, const std::string& known_lease, bool leased_too);
  // Changes the rules of the team by which a batch that is not leased yet is ordered.
  void set_rules(const std::string& batch_id, const TeamRules& rules);
  // Whether a worker has a lease of the batch, or a worker that was heard from lately may get one. Also true in the
  // first seconds after a start, while workers reconnect.
  bool can_be_had(const std::string& batch_id) const;
  // Says that a search has open batches in the store which it will offer again: until arrived(), a renewal of an
  // unknown lease may belong to one of them and gets kOk.
  void expect(int64_t search_id);
  void arrived(int64_t search_id);
  // Says that all jobs from before the restart are taken up, so that expect() was called for each of their searches
  // that has open batches.
  void recovered();

  // --- Functions for workers

  // Waits until `deadline` for work; `done` is called once (ready_queue.h). Cancelled: cancel() was called first.
  // FailedPrecondition: the worker is not registered under this epoch. Unavailable: leave() was called.
  std::shared_ptr<LeaseCall> acquire(const std::string& name, uint64_t epoch, int max, Clock::time_point deadline,
                                     AcquireDone done);
  void cancel(const std::shared_ptr<LeaseCall>& call) { ready_.cancel(call); }
  // The following functions are those of Engine: a lease may be used only by the worker that it was granted to.
  RenewOutcome renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done);
  absl::StatusOr<ReportOutcome> report(const std::string& by, const std::string& batch_id, const LeaseRef& lease,
                                       std::vector<Trial> trials);
  void release(const std::string& worker, const LeaseRef& lease, LeaseEnd why);
  bool held_by(const std::string& principal) const;               // whether a worker of the principal has a lease
  std::map<std::string, std::vector<WorkerDoing>> doing() const;  // the leases of each worker process, oldest first
  std::vector<Owned> of_older_processes(const std::string& name, uint64_t epoch) const;
  std::vector<Owned> of_process(const std::string& name, uint64_t epoch) const;

  void drain(bool on) { ready_.drain(on); }  // While draining is on, no new leases are given.
  bool draining() const { return ready_.draining(); }
  std::map<std::string, int64_t> ready_candidates() const { return ready_.candidates(); }
  void leave() { ready_.leave(); }  // Answers all waiting calls: the process is about to end.
  void wake() { ready_.look(); }    // Must be called when the event loop is no longer busy.
  // Says that an object could not be stored. If a lease that was granted before is then given back (kUnable), this is
  // held against neither the worker nor its candidates: the search fails with this status.
  void upload_failed(const absl::Status& status);

  // Ends leases that are past their deadline or overdue, and determines anew which workers must not get a ready batch.
  void expire();
  // Ends a lease without a report. The reason and the batch's earlier leases decide what becomes of the batch
  // (lease_ends.h).
  void end(const Owned& owned, LeaseEnd why);
  // Called when a new process of a worker has registered, which may get batches that the older one was unable to do.
  void welcome(const std::string& name);

 private:
  struct Item {
    Offer offer;
    // kLeasing: the store is being asked to lease the batch. kJudged: a lease of the batch has ended, and what becomes
    // of the batch is being decided.
    enum class State { kReady, kLeasing, kLeased, kJudged } state = State::kReady;
    std::string lease_id, worker;  // id of the lease, and the worker process that has it (process_of())
    int64_t attempt = 0;
    Clock::time_point offered = Clock::now();
    Clock::time_point granted, expires, moved;  // when the lease began, when it expires, and when it last made progress
    // When the process that has the lease last ended another one. A process measures its batches one after another.
    Clock::time_point after;
    // The step that the worker reported last, and a text of the step and of the count that the worker reported with
    // it. The worker has made progress when this text changes.
    std::string step, progress;
    // Whether the batch was leased before the coordinator started, and its lease has not been renewed since.
    bool restored = false;
    std::vector<std::string> lost_on;  // names of the workers that were lost with the batch, one for each loss
    size_t lost_before = 0;            // number of workers lost with the batches from which this one was split
    std::set<std::string> unable;      // names of workers that gave the batch back as kUnable
    std::set<std::string> avoid;       // workers, principals and machines that may not get the batch now
    int overdue = 0;                   // number of leases of the batch that ended as kOverdue

    // Returns the seconds since the worker could begin with the batch: since the lease was granted or, if that was
    // before the coordinator started, since the batch was offered here; not before the worker ended its last lease.
    double held_s(Clock::time_point now) const {
      return std::chrono::duration<double>(now - std::max({granted, offered, after})).count();
    }
    // Whether the worker has not begun with the batch, as far as its renewals say.
    bool waits() const { return step == kWaitsForOthers; }
  };
  using Items = std::map<std::string, Item>;

  absl::StatusOr<std::optional<LeaseGrant>> lease(const std::string& batch_id, const ReadyQueue::Request& request);
  // Whether a call that gets the batch gets no other: unless it is a promotion of one kernel, since only such kernels
  // can be compiled with those of other batches; and if it was leased before, since all batches that a worker holds
  // count as lost when it is.
  static bool is_alone(const Item& item) {
    return item.offer.batch->candidates.size() != 1 || !item.offer.batch->keep_objects ||
           !item.offer.batch->chains.empty() || item.attempt > 0 || item.lost_before > 0;
  }
  // Adds the item to the queue of ready batches. The lock must be held.
  void put_ready(const std::string& batch_id, const Item& item) {
    ready_.put(batch_id, {.device = item.offer.device,
                          .order = item.offer.order,
                          .avoid = item.avoid,
                          .team = item.offer.team,
                          .weight = item.offer.rules.weight,
                          .priority = item.offer.rules.priority,
                          .candidates = static_cast<int64_t>(item.offer.batch->candidates.size()),
                          .alone = is_alone(item)});
  }
  std::vector<Owned> owned_by(const std::function<bool(const std::string& process)>& is_of) const;
  static bool bars(const Item& item, const std::string& name, const std::string& machine);
  // Defined in lease_ends.cpp:
  std::vector<std::string> others_for(const Item& item) const;
  std::set<std::string> avoided(const Item& item) const;
  double usual_loss(const Item& item) const;
  std::vector<Owned> overdue() const;
  void ready_again(const std::string& batch_id, std::set<std::string> avoid);
  void split(const Item& item);
  void condemn(const Item& item);
  // Notes that a process has ended a lease, and begins with the next one that it holds. The lock must be held.
  void next_of(const std::string& process);
  bool waits_for_searches() const { return recovering_ || !expected_.empty(); }

  Store* const store_;
  Workers* const workers_;
  const Clock::duration term_, stuck_;
  const Clock::time_point begun_ = Clock::now();
  const LeaseCallbacks callbacks_;

  mutable std::mutex mutex_;  // guards the members declared below, except ready_
  Overdue overdue_;
  Items items_;                                         // the batches that are ready or leased, by batch id
  std::map<std::string, Clock::time_point> cancelled_;  // when leases were cancelled, by id of the lease
  std::set<int64_t> expected_;                          // ids of the searches passed to expect()
  std::optional<std::pair<Clock::time_point, absl::Status>> upload_failure_;  // the last failed upload, with its time
  size_t losses_ = 0, reports_ = 0;  // number of leases that ended with a lost worker, and with a report
  bool recovering_ = true;
  Clock::time_point settled_;  // when recovered() or arrived() was called last

  ReadyQueue ready_;  // Declared last, so destroyed first: its threads use the other members.
};

}  // namespace wl

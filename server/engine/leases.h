// The batches that are ready or leased, with the deadlines of their leases. A batch is leased in the store before it is
// given to a worker, and the store decides which report counts, so this object's state may be lost.
//
// All functions may be called from any thread. The lock guards the maps and flags only: it is released around SQL, and
// the callbacks run without it. See impl.h for the order of locks.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>

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
  // Smaller first: the time when the round is due (compiler/search/budget.h), then the job's id (older first), then the
  // negative weight of the group (heavy first).
  ReadyQueue::Order order;
  BatchRow row;  // its row in the store; a lease that it had when the coordinator started gets a full new term
  std::set<std::string> not_by;  // principals and machines (on_machine()) whose workers never get the batch
  double floor_ns = 0;           // trials with a sample below it become errors (compiler/model/roofline.h); 0: no limit
  std::string team = {};         // team of the search
  TeamRules rules = {};          // rules of the team
};

struct LeaseCallbacks {
  // The trials of a batch were stored. `worker`: the process that reported them (NAME#EPOCH); empty: the batch was
  // given up. Called before the batch leaves this object.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials,
                     const std::string& worker)>
      stored;
  // Parts have replaced a batch. Called before a worker can get one of them.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<BatchRow>& parts)> split;
  std::function<void(LeaseEnd why)> ended = [](LeaseEnd) {};  // a lease ended without a report
  // The store could not write a change of a batch of this search.
  std::function<void(int64_t search_id, const absl::Status& status)> store_failed;
};

// Returns the trials that a report of the batch has: one for each chain if it has chains (covers timed as a whole),
// else one for each candidate.
std::vector<PlannedTrial> reported_of(const Batch& batch);
// Returns the trial (kRuntimeError) of a candidate or chain that was not measured.
Trial failed_trial(const PlannedTrial& of, std::string message);

// Whether an error of the store is lasting, so that trying again does not help: disk full, no permission, damage.
bool lasts(const absl::Status& status);

class Leases {
 public:
  struct Owned {
    std::string batch_id;
    LeaseRef lease;
  };

  // `term`: a lease ends when it is not renewed for this time. `stuck`: a lease is lost after this time without
  // progress, even if renewed. `patience_s`: as EngineSettings. `quiet_while_busy`: no lease is given while the
  // loop is busy. All pointers must outlive the object.
  Leases(Store* store, Workers* workers, const EventLoop* loop, Clock::duration term, Clock::duration stuck,
         double patience_s, bool quiet_while_busy, LeaseCallbacks callbacks);

  // --- the searches' side
  void offer(Offer offer);
  // Takes back a batch that was not reported yet, in the store too. False: it was reported already, or is leased and
  // `leased_too` is false. With `leased_too` a lease is cancelled. `known_lease`: the lease, if any, of a batch that
  // was not offered yet.
  bool take_back(const std::string& batch_id, const std::string& known_lease, bool leased_too);
  // Changes the rules by which a batch is ordered, until it is leased.
  void set_rules(const std::string& batch_id, const TeamRules& rules);
  // Whether a worker has the batch, or one that is there may get it. Also true in the first seconds after a start,
  // while workers reconnect.
  bool can_be_had(const std::string& batch_id) const;
  // Until arrived(), a renewal of an unknown lease may be for this search, and is answered with kOk.
  void expect(int64_t search_id);
  void arrived(int64_t search_id);
  void recovered();  // All searches that were open when the coordinator started were passed to expect() or are live.

  // --- the workers' side
  // Waits until `deadline` for work; `done` is called once (ready_queue.h). Cancelled: cancel() came first.
  // FailedPrecondition: not registered under this epoch. Unavailable: leave() was called.
  std::shared_ptr<LeaseCall> acquire(const std::string& name, uint64_t epoch, int max, Clock::time_point deadline,
                                     AcquireDone done);
  void cancel(const std::shared_ptr<LeaseCall>& call) { ready_.cancel(call); }
  // As those of Engine: only the worker that a lease was granted to may use it.
  RenewOutcome renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done);
  absl::StatusOr<ReportOutcome> report(const std::string& by, const std::string& batch_id, const LeaseRef& lease,
                                       std::vector<Trial> trials);
  void release(const std::string& worker, const LeaseRef& lease, LeaseEnd why);
  bool held_by(const std::string& principal) const;               // whether a worker of the principal has a lease
  std::map<std::string, std::vector<WorkerDoing>> doing() const;  // the leases, by process, oldest first
  std::vector<Owned> of_older_processes(const std::string& name, uint64_t epoch) const;
  std::vector<Owned> of_process(const std::string& name, uint64_t epoch) const;

  void drain(bool on) { ready_.drain(on); }  // While it is on, no new leases are given.
  bool draining() const { return ready_.draining(); }
  std::map<std::string, int64_t> ready_candidates() const { return ready_.candidates(); }
  void leave() { ready_.leave(); }  // The process is about to end: calls that wait are answered.
  void wake() { ready_.look(); }    // To be called when the loop is no longer busy.
  // An object could not be stored. A lease that was granted before and is given back afterwards (kUnable) is held
  // against neither the worker nor its candidates: the search fails with this status.
  void upload_failed(const absl::Status& status);

  // Ends leases that are past their deadline or overdue, and finds again which workers do not get a ready batch.
  void expire();
  // Ends a lease without a report. The reason and the batch's earlier leases decide what becomes of the batch
  // (lease_ends.h).
  void end(const Owned& owned, LeaseEnd why);
  // A new process of a worker has registered: it may get batches that the older process was unable to do.
  void welcome(const std::string& name);

 private:
  struct Item {
    Offer offer;
    // kLeasing: the store is being asked for a lease. kJudged: the lease has ended, and it is being decided what
    // follows.
    enum class State { kReady, kLeasing, kLeased, kJudged } state = State::kReady;
    std::string lease_id, worker;  // worker: the process that has the lease (process_of())
    int64_t attempt = 0;
    Clock::time_point offered = Clock::now();
    Clock::time_point granted, expires, moved;  // moved: time of the last progress
    std::string step, progress;                 // step: as last reported; progress: the step and how far it has come
    bool restored = false;                      // leased before the coordinator started, and not renewed since
    std::vector<std::string> lost_on;           // as in BatchRow
    size_t lost_before = 0;                     // number of losses of the batches from which it was split
    std::set<std::string> unable;               // names of workers that gave it back as kUnable
    std::set<std::string> avoid;                // names, principals and machines that do not get it at present
    int overdue = 0;                            // how many of its leases ended as kOverdue

    // Seconds since it was leased; for a lease from before this process, since it was offered here.
    double held_s(Clock::time_point now) const {
      return std::chrono::duration<double>(now - std::max(granted, offered)).count();
    }
  };
  using Items = std::map<std::string, Item>;

  absl::StatusOr<std::optional<LeaseGrant>> lease(const std::string& batch_id, const ReadyQueue::Request& request);
  // Adds the item to the queue of ready batches. The lock must be held.
  void put_ready(const std::string& batch_id, const Item& item) {
    ready_.put(batch_id, {.device = item.offer.device,
                          .order = item.offer.order,
                          .avoid = item.avoid,
                          .team = item.offer.team,
                          .weight = item.offer.rules.weight,
                          .priority = item.offer.rules.priority,
                          .candidates = static_cast<int64_t>(item.offer.batch->candidates.size())});
  }
  std::vector<Owned> owned_by(const std::function<bool(const std::string& process)>& is_of) const;
  static bool bars(const Item& item, const std::string& name, const std::string& machine);
  // lease_ends.cpp
  std::vector<std::string> others_for(const Item& item) const;
  std::set<std::string> avoided(const Item& item) const;
  double usual_loss(const Item& item) const;
  std::vector<Owned> overdue() const;
  void ready_again(const std::string& batch_id, std::set<std::string> avoid);
  void split(const Item& item);
  void condemn(const Item& item);
  bool waits_for_searches() const { return recovering_ || !expected_.empty(); }

  Store* const store_;
  Workers* const workers_;
  const Clock::duration term_, stuck_;
  const Clock::time_point begun_ = Clock::now();
  const LeaseCallbacks callbacks_;

  mutable std::mutex mutex_;  // guards the rest
  Overdue overdue_;
  Items items_;                                                               // by batch id
  std::map<std::string, Clock::time_point> cancelled_;                        // ids of cancelled leases, with the time
  std::set<int64_t> expected_;                                                // searches passed to expect()
  std::optional<std::pair<Clock::time_point, absl::Status>> upload_failure_;  // the last failure, with its time
  size_t losses_ = 0, reports_ = 0;  // number of leases that ended with a lost worker, and with a report
  bool recovering_ = true;

  ReadyQueue ready_;  // Declared last: its threads use the other members.
};

}  // namespace wl

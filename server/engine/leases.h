// What is handed out: batches that are ready or leased, with the deadlines of their leases. A batch is leased in the
// store before it leaves, and the store decides which report counts; what is here can be lost.
//
// Every function may be called from any thread. The lock guards the maps and flags only: it is released around SQL, and
// the callbacks run without it. See parts.h for the order of locks.
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

// A batch that is to be measured.
struct Offer {
  std::shared_ptr<const Batch> batch;
  int64_t search_id = 0;
  Device device;
  // Smaller first: when the round is due (compiler/search/budget.h), older jobs first, heavy groups first.
  ReadyQueue::Order order;
  BatchRow row;                  // a lease that it had when the coordinator started goes on for a full term
  std::set<std::string> not_by;  // principals and machines (on_machine()) whose workers are never given it
  double floor_ns = 0;           // no sample below it is believed (compiler/model/roofline.h); 0: any is
  std::string team = {};         // whose search it is
  TeamRules rules = {};          // of the team
};

struct LeaseCallbacks {
  // The trials of a batch were stored, as a worker's process reported them (empty: they were given up). Called before
  // the batch leaves the table.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials,
                     const std::string& worker)>
      stored;
  // Parts take the place of a batch. Called before anybody can have them.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<BatchRow>& parts)> split;
  std::function<void(LeaseEnd why)> ended = [](LeaseEnd) {};  // a lease, without a report
  // The store could not write what became of a batch of this search.
  std::function<void(int64_t search_id, const absl::Status& status)> store_failed;
};

// What is reported of a batch: one trial for each chain if it has any, and else for each candidate.
std::vector<PlannedTrial> reported_of(const Batch& batch);
// The trial of one that was not measured to its end.
Trial failed_trial(const PlannedTrial& of, std::string message);

// Whether an error of the store does not pass by itself.
bool lasts(const absl::Status& status);

class Leases {
 public:
  struct Owned {
    std::string batch_id;
    LeaseRef lease;
  };

  // `stuck`: a lease without progress for so long is lost, renewed or not. `patience_s`: one with progress lasts for so
  // long although somebody else waits (overdue.h). `quiet_while_busy`: gives no lease while the loop is busy.
  Leases(Store* store, Workers* workers, const EventLoop* loop, Clock::duration term, Clock::duration stuck,
         double patience_s, bool quiet_while_busy, LeaseCallbacks callbacks);

  // --- the searches' side
  void offer(Offer offer);
  // Takes a batch back that was not reported yet, in the store too. False: it stays, or its report was faster.
  // `known_lease`: of a batch that was not offered yet. `leased_too`: also while a worker has it; its lease is then
  // cancelled.
  bool take_back(const std::string& batch_id, const std::string& known_lease, bool leased_too);
  // From now on these rules say when a batch has its turn, if it was not leased yet.
  void set_rules(const std::string& batch_id, const TeamRules& rules);
  // Whether some live worker may be given the batch, or has it. Also true in the first seconds of a coordinator:
  // workers come back.
  bool can_be_had(const std::string& batch_id) const;
  // Until arrived(), renewals of unknown leases may concern this search.
  void expect(int64_t search_id);
  void arrived(int64_t search_id);
  void recovered();  // All searches that were open when the coordinator started are expected or known.

  // --- the workers' side
  // Waits until `deadline` for work, and then calls `done` once (ready_queue.h). Cancelled: cancel() was first.
  // FailedPrecondition: not registered under this epoch; Unavailable: leave().
  std::shared_ptr<LeaseCall> acquire(const std::string& name, uint64_t epoch, int max, Clock::time_point deadline,
                                     AcquireDone done);
  void cancel(const std::shared_ptr<LeaseCall>& call) { ready_.cancel(call); }
  // As those of Engine: a lease is the worker's that it was granted to.
  RenewOutcome renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done);
  absl::StatusOr<ReportOutcome> report(const std::string& by, const std::string& batch_id, const LeaseRef& lease,
                                       std::vector<Trial> trials);
  void release(const std::string& worker, const LeaseRef& lease, LeaseEnd why);
  bool held_by(const std::string& principal) const;               // A worker of this principal has a lease.
  std::map<std::string, std::vector<WorkerDoing>> doing() const;  // what is leased, by process, the oldest first
  std::vector<Owned> of_older_processes(const std::string& name, uint64_t epoch) const;
  std::vector<Owned> of_process(const std::string& name, uint64_t epoch) const;

  void drain(bool on) { ready_.drain(on); }  // Gives no new lease while it is on.
  bool draining() const { return ready_.draining(); }
  std::map<std::string, int64_t> ready_candidates() const { return ready_.candidates(); }
  void leave() { ready_.leave(); }  // The process is about to end: calls that wait are answered.
  void wake() { ready_.look(); }    // The loop is not busy any more.
  // An object could not be stored. A worker that gives its lease back since then cannot be blamed, and neither can its
  // candidates: the search fails with this status.
  void upload_failed(const absl::Status& status);

  void expire();  // Ends every lease whose deadline has passed.
  // Ends a lease without a report. What becomes of the batch follows from why, and from the leases that it had before.
  void end(const Owned& owned, LeaseEnd why);
  // A new process of a worker has come: what the older one was unable to do, it may do.
  void welcome(const std::string& name);

 private:
  struct Item {
    Offer offer;
    // kLeasing: the store is being asked. kJudged: its lease has ended, and what follows is not decided yet.
    enum class State { kReady, kLeasing, kLeased, kJudged } state = State::kReady;
    std::string lease_id, worker;  // worker: its process (process_of())
    int64_t attempt = 0;
    Clock::time_point offered = Clock::now();
    Clock::time_point granted, expires, moved;  // moved: when the lease last made progress
    std::string step, progress;                 // as the worker said last; progress: the step and how far it has come
    bool restored = false;                      // leased before the coordinator started, and not renewed since
    std::vector<std::string> lost_on;           // as in BatchRow
    size_t lost_before = 0;                     // losses of the batches that it is a part of
    std::set<std::string> unable;               // workers that cannot do it
    std::set<std::string> avoid;                // workers that are not given it
    int overdue = 0;                            // leases of it that lasted too long

    // Seconds since it was leased, as far as this process knows: one that was before has no time of its own.
    double held_s(Clock::time_point now) const {
      return std::chrono::duration<double>(now - std::max(granted, offered)).count();
    }
  };
  using Items = std::map<std::string, Item>;

  absl::StatusOr<std::optional<LeaseGrant>> lease(const std::string& batch_id, const ReadyQueue::Request& request);
  // With the lock held: `item` may be given to who asks.
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
  std::map<std::string, Clock::time_point> cancelled_;                        // lease ids, and since when
  std::set<int64_t> expected_;                                                // searches
  std::optional<std::pair<Clock::time_point, absl::Status>> upload_failure_;  // the last one
  size_t losses_ = 0, reports_ = 0;  // leases that ended with a lost worker, and with a report
  bool recovering_ = true;

  ReadyQueue ready_;  // Last: its threads call the rest.
};

}  // namespace wl

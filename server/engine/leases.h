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
#include <shared_mutex>

#include "server/engine/engine.h"
#include "server/engine/event_loop.h"
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
  BatchRow row;  // a lease that it had when the coordinator started goes on for a full term
};

struct LeaseCallbacks {
  // The trials of a batch were stored. Called before the batch leaves the table.
  std::function<void(int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials)> stored;
  std::function<void(const absl::Status& status)> store_failed;
};

class Leases {
 public:
  struct Owned {
    std::string batch_id;
    LeaseRef lease;
  };

  // `quiet_while_busy`: gives no lease while the loop is busy.
  Leases(Store* store, Workers* workers, const EventLoop* loop, Clock::duration term, bool quiet_while_busy,
         LeaseCallbacks callbacks);

  // --- the searches' side
  void offer(Offer offer);
  // Takes a batch back that was not reported yet, in the store too. False: it stays, or its report was faster.
  // `known_lease`: of a batch that was not offered yet. `leased_too`: also while a worker has it; its lease is then
  // cancelled.
  bool take_back(int64_t search_id, const std::string& batch_id, const std::string& known_lease, bool leased_too);
  // While the guard lives, no report is judged or stored. So a search that is read from the store has either all trials
  // of a batch or the batch still to come. Taken before every other lock.
  std::unique_lock<std::shared_mutex> hold_reports() { return std::unique_lock(taking_up_); }
  // Until arrived(), reports and renewals of unknown batches may concern this search: they are to come again.
  void expect(int64_t search_id);
  void arrived(int64_t search_id);
  void recovered();  // All searches that were open when the coordinator started are expected or known.

  // --- the workers' side
  // Waits until `deadline` for work, and then calls `done` once (ready_queue.h). Cancelled: cancel() was first.
  // FailedPrecondition: not registered under this epoch. Does not set `idle`.
  std::shared_ptr<LeaseCall> acquire(const std::string& name, uint64_t epoch, int max, Clock::time_point deadline,
                                     AcquireDone done);
  void cancel(const std::shared_ptr<LeaseCall>& call) { ready_.cancel(call); }
  RenewOutcome renew(const LeaseRef& lease, const std::string& phase, int64_t done);
  absl::StatusOr<ReportOutcome> report(const std::string& batch_id, const LeaseRef& lease, std::vector<Trial> trials);
  void release(const LeaseRef& lease);
  int held_by(const std::string& process) const;
  std::vector<Owned> of_older_processes(const std::string& name, uint64_t epoch) const;

  void drain() { ready_.drain(); }  // Gives no new lease.
  bool draining() const { return ready_.draining(); }
  void wake() { ready_.look(); }  // The loop is not busy any more.

  void expire();  // Ends every lease whose deadline has passed.
  // Ends a lease without a result: the batch is ready for another attempt. `failed`: nothing was heard. After several
  // of these the batch itself is the suspect, and all its candidates have failed.
  void end(const Owned& owned, bool failed);

 private:
  struct Item {
    Offer offer;
    enum class State { kReady, kLeasing, kLeased } state = State::kReady;  // kLeasing: the store is being asked
    std::string lease_id, worker;
    int64_t attempt = 0;
    Clock::time_point expires, moved;  // moved: when its progress last changed
    std::string progress;
  };
  using Items = std::map<std::string, Item>;

  absl::StatusOr<std::optional<LeaseGrant>> lease(const std::string& batch_id, const ReadyQueue::Request& request);
  bool waits_for_searches() const { return recovering_ || !expected_.empty(); }

  Store* const store_;
  Workers* const workers_;
  const Clock::duration term_;
  const LeaseCallbacks callbacks_;

  std::shared_mutex taking_up_;

  mutable std::mutex mutex_;         // guards the rest
  Items items_;                      // by batch id
  std::set<std::string> cancelled_;  // lease ids
  std::set<int64_t> expected_;       // searches
  bool recovering_ = true;

  ReadyQueue ready_;  // Last: its threads call the rest.
};

}  // namespace wl

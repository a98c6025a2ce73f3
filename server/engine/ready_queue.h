// The batches that are ready to be leased, ordered within each class of device, team and priority, and the calls of
// workers that wait for a batch. A batch that becomes ready is given to the call that suits it and has waited longest,
// and only that call is woken. If several batches are ready for a call, those of teams with the highest priority come
// first; among teams of one priority, those of the team that was given the fewest candidates, in proportion to its
// weight, since it last had no ready batch (start-time fair queueing, after P. Goyal, H. M. Vin and H. Cheng, SIGCOMM
// 1996).
//
// All functions may be called from any thread. The lock is the innermost one of the engine: it may be taken under that
// of Leases, and only the callback `paused` is called under it. Batches are leased, and calls answered, on the queue's
// threads and without the lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/event_loop.h"

namespace wl {

class ReadyQueue {
 public:
  using Order = std::tuple<double, int64_t, double>;  // batches with a smaller order are given out first
  // A worker process's request for work.
  struct Request {
    std::string worker, team = {};
    std::string machine = {};  // the machine on which the worker runs; empty: it is unknown
    uint64_t epoch = 0;
    std::vector<Device> devices;
    // Maximum number of batches that the worker takes; values below 1 count as 1. A call gets several only if none of
    // them is one that is given alone.
    int max = 1;
    Clock::time_point deadline;
  };
  struct Ready {
    Device device;
    Order order;
    // Workers, principals and machines (on_machine()) that must not get the batch.
    std::set<std::string> avoid = {};
    std::string team = {};
    int64_t weight = 1, priority = 0;  // weight and priority of the team (TeamRules)
    int64_t candidates = 1;
    bool alone = false;  // whether a call that gets the batch gets no other
  };
  struct Callbacks {
    // Returns whether no batch may be given at present. Whoever ends this state must call look().
    std::function<bool()> paused;
    // Leases a batch in the store. nullopt: the batch is no longer ready. After an error the call ends, and the batch
    // is ready for other calls.
    std::function<absl::StatusOr<std::optional<LeaseGrant>>(const std::string& batch_id, const Request& request)> lease;
    // Takes back a lease that was made while its call was being cancelled.
    std::function<void(const std::string& worker, const LeaseRef& lease)> release;
  };

  explicit ReadyQueue(Callbacks callbacks);
  ~ReadyQueue();  // Answers the waiting calls as leave() does.
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  void put(const std::string& batch_id, Ready batch);
  void drop(const std::string& batch_id);  // Removes a batch that is no longer ready, if it is in the queue.
  // Says that a batch that was given to a worker is no longer measured, so another worker of the machine may have its
  // turn. No effect on batches that took no turn.
  void over(const std::string& batch_id);

  // Waits for batches. `done` is called exactly once, on a thread of the queue: with leases (none at the deadline),
  // with an error of Callbacks::lease, with Unavailable after leave(), or with Cancelled after cancel().
  std::shared_ptr<LeaseCall> wait(Request request, AcquireDone done);
  // Cancels a call: unless it was answered already, it gets no lease, and the batches that it was given go to other
  // calls.
  void cancel(const std::shared_ptr<LeaseCall>& call);

  void look();          // Gives ready batches to waiting calls; to be called when `paused` no longer holds.
  void drain(bool on);  // While draining is on, no batches are given and calls wait.
  bool draining() const;
  std::map<std::string, int64_t> candidates() const;  // number of candidates of the ready batches, by target
  void leave();                                       // Answers all calls, also later ones, without a lease.

 private:
  using Calls = std::map<uint64_t, std::shared_ptr<LeaseCall>>;  // waiting calls, by order of arrival
  struct BatchClass {
    Device device;
    std::string team;
    int64_t priority = 0;
    std::set<std::pair<Order, std::string>> batches;
  };
  struct WorkerClass {
    std::vector<Device> devices;
    std::string team;
    Calls calls;
  };
  struct Place {
    std::string of;  // key of the batch's class in ready_
    Ready batch;
  };

  void serve();
  void answer(const std::shared_ptr<LeaseCall>& call);
  // The lock must be held when the following functions are called.
  bool paused() const { return leaving_ || draining_ || callbacks_.paused(); }
  void add(const std::string& batch_id, Ready batch);
  void settle(const std::shared_ptr<LeaseCall>& call);
  void match(const std::string& of);
  std::shared_ptr<LeaseCall> longest_waiting(const Ready& batch) const;
  double charged(const Ready& batch, double sign);
  bool take_best(LeaseCall& call);
  bool has_turn(const Request& request, const Device& device) const;
  void begin_turn(const Request& request, const std::string& batch_id, const Device& device);
  bool end_turn(const std::string& batch_id);
  void stop_waiting(const LeaseCall& call);
  void give_back(LeaseCall& call, size_t from = 0);
  void make_due(std::shared_ptr<LeaseCall> call);
  void end_all();

  const Callbacks callbacks_;

  mutable std::mutex mutex_;  // guards the members declared below, except the threads
  std::condition_variable changed_;
  std::map<std::string, BatchClass> ready_;     // ready batches by class; a class without batches has no entry
  std::map<std::string, Place> places_;         // each ready batch and its class's key in ready_, by id of the batch
  std::map<std::string, WorkerClass> waiting_;  // waiting calls by class of worker; a class without calls has no entry
  // By priority and team: the number of candidates given to the team, divided by the team's weight.
  std::map<std::pair<int64_t, std::string>, double> served_;
  // By priority, the virtual time of fair queueing: the value that served_ had for the team served last, before that
  // team was served.
  std::map<int64_t, double> turn_;
  // CPU workers of one machine would disturb each other's timings, so they take turns. turns_ has the worker whose turn
  // it is, by machine; on_turn_ has the machine of each batch that is measured in a turn, by id of the batch.
  struct OnTurn {
    std::string worker;
    int batches = 0;  // number of batches that the worker has; at least one
  };
  std::map<std::string, OnTurn> turns_;
  std::map<std::string, std::string> on_turn_;
  // The waiting calls by deadline.
  std::map<std::pair<Clock::time_point, uint64_t>, std::shared_ptr<LeaseCall>> deadlines_;
  std::deque<std::shared_ptr<LeaseCall>> due_;  // workers' calls that are to be answered
  uint64_t arrivals_ = 0;
  bool draining_ = false, leaving_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace wl

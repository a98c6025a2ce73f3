// The batches that are ready, by class of device, team and priority and in order, and the calls that wait for one. A
// batch that becomes ready is given to the call that serves it and has waited longest, and only that call is woken.
// Where several are ready for a call, those of the team with the highest priority come first; of teams of one priority,
// the one that was given fewest candidates for its weight since it last had to wait (start-time fair queueing, after P.
// Goyal, H. M. Vin and H. Cheng, SIGCOMM 1996).
//
// Every function may be called from any thread. The lock is the innermost of the engine's: it may be taken under that
// of Leases, and nothing is called under it but `paused`. Leases are made, and calls are answered, on the threads of
// the queue and without the lock.
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
  using Order = std::tuple<double, int64_t, double>;  // smaller first
  // What a worker process asks for.
  struct Request {
    std::string worker, team = {};
    std::string machine = {};  // on which it runs; empty: not known
    uint64_t epoch = 0;
    std::vector<Device> devices;
    int max = 1;  // batches at most; at least one
    Clock::time_point deadline;
  };
  struct Ready {
    Device device;
    Order order;
    // Workers that are not given the batch, and principals and machines (on_machine()) of which none is.
    std::set<std::string> avoid = {};
    std::string team = {};
    int64_t weight = 1, priority = 0;  // of the team
    int64_t candidates = 1;
  };
  struct Callbacks {
    std::function<bool()> paused;  // Whether nothing is to be given now; look() after it no longer holds.
    // Leases a batch in the store. nullopt: it is not ready any more. An error ends the call, and the batch is ready
    // for the next one.
    std::function<absl::StatusOr<std::optional<LeaseGrant>>(const std::string& batch_id, const Request& request)> lease;
    // Takes a lease back whose call was cancelled meanwhile.
    std::function<void(const std::string& worker, const LeaseRef& lease)> release;
  };

  explicit ReadyQueue(Callbacks callbacks);
  ~ReadyQueue();  // Answers the calls that wait, as leave() does.
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  void put(const std::string& batch_id, Ready batch);
  void drop(const std::string& batch_id);  // It is not ready any more. Nothing happens if it was not there.
  // It was given, and is measured no more: the next worker of the machine has its turn. Nothing happens if it has none.
  void over(const std::string& batch_id);

  // `done` is called exactly once, on a thread of the queue: with leases, empty at the deadline, with Unavailable after
  // leave(), or with Cancelled after cancel().
  std::shared_ptr<LeaseCall> wait(Request request, AcquireDone done);
  // The call gets no lease from now on, unless it was answered already. Its batches are ready for others at once.
  void cancel(const std::shared_ptr<LeaseCall>& call);

  void look();          // Gives what is ready to the calls that wait: nothing is paused any more.
  void drain(bool on);  // While it is on, nothing is given and calls wait.
  bool draining() const;
  std::map<std::string, int64_t> candidates() const;  // of the batches that are ready, by target
  void leave();                                       // Answers every call, now and from now on, without a lease.

 private:
  using Calls = std::map<uint64_t, std::shared_ptr<LeaseCall>>;  // by arrival
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
    std::string of;  // class
    Ready batch;
  };

  void serve();
  void answer(const std::shared_ptr<LeaseCall>& call);
  // With the lock held:
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

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::map<std::string, BatchClass> ready_;     // by class of device; only those that have batches
  std::map<std::string, Place> places_;         // of the ready batches
  std::map<std::string, WorkerClass> waiting_;  // by class of worker; only those that have calls
  // By priority and team: candidates that it was given, divided by its weight.
  std::map<std::pair<int64_t, std::string>, double> served_;
  std::map<int64_t, double> turn_;  // by priority: what the team served last had been given before that
  // Workers of one machine that measure on its processors would disturb each other, so they take turns: whose turn it
  // is, by machine, and the machine of each batch of a turn.
  struct OnTurn {
    std::string worker;
    int batches = 0;  // at least one
  };
  std::map<std::string, OnTurn> turns_;
  std::map<std::string, std::string> on_turn_;
  std::map<std::pair<Clock::time_point, uint64_t>, std::shared_ptr<LeaseCall>> deadlines_;  // of the calls that wait
  std::deque<std::shared_ptr<LeaseCall>> due_;                                              // to be answered
  uint64_t arrivals_ = 0;
  bool draining_ = false, leaving_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace wl

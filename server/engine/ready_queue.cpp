#include "server/engine/ready_queue.h"

#include <algorithm>

#include "server/engine/devices.h"
#include "server/engine/workers.h"

namespace wl {
namespace {

// Number of threads that lease batches and answer calls: several, so that several leases can share one commit of the
// store.
constexpr int kAnswerThreads = 4;

std::string class_of(const std::vector<Device>& devices, const std::string& team) {
  std::string out;
  for (const Device& device : devices) append(&out, class_of(device, team), "\n\n");
  return out;
}

bool bars(const std::set<std::string>& avoid, const ReadyQueue::Request& by) {
  return avoid.contains(by.worker) || avoid.contains(principal_of(by.worker)) || avoid.contains(on_machine(by.machine));
}

bool takes_turns(const Device& device) {
  return device.target.starts_with("cpu");
}

}  // namespace

// A worker's call for leases, in one of four states: it waits, is to be answered, is being answered, or was answered.
struct LeaseCall {
  struct Given {
    std::string batch_id;
    ReadyQueue::Ready batch;
  };
  ReadyQueue::Request request;
  AcquireDone done;
  std::string of;  // key of the call's class in ReadyQueue::waiting_
  uint64_t arrival = 0;
  // The queue's lock guards the following fields.
  enum class State { kWaiting, kDue, kAnswering, kAnswered } state = State::kWaiting;
  bool cancelled = false;
  std::vector<Given> given;
};

ReadyQueue::ReadyQueue(Callbacks callbacks) : callbacks_(std::move(callbacks)) {
  for (int i = 0; i < kAnswerThreads; ++i) threads_.emplace_back([this] { serve(); });
}

ReadyQueue::~ReadyQueue() {
  {
    const std::lock_guard lock(mutex_);
    end_all();
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadyQueue::put(const std::string& batch_id, Ready batch) {
  const std::lock_guard lock(mutex_);
  add(batch_id, std::move(batch));
}

void ReadyQueue::add(const std::string& batch_id, Ready batch) {
  const std::string of = cat(class_of(batch.device, batch.team), "\n", batch.priority);
  const auto [place, is_new] = places_.emplace(batch_id, Place{of, std::move(batch)});
  if (!is_new) return;
  const Ready& added = place->second.batch;
  // While a team has no ready batches, it must not save up its share of candidates for later. So when it has ready
  // batches again, its count of given candidates is raised to at least the virtual time.
  const bool waits = std::any_of(ready_.begin(), ready_.end(), [&](const auto& item) {
    return item.second.team == added.team && item.second.priority == added.priority;
  });
  if (double& served = served_[{added.priority, added.team}]; !waits) served = std::max(served, turn_[added.priority]);
  BatchClass& ready = ready_[of];
  ready.device = added.device;
  ready.team = added.team;
  ready.priority = added.priority;
  ready.batches.emplace(added.order, batch_id);
  match(of);
}

// Adds a batch's candidates to those that were given to its team (sign 1), or takes them off again (sign -1), divided
// by the team's weight. Returns the sum before that.
double ReadyQueue::charged(const Ready& batch, double sign) {
  double& served = served_[{batch.priority, batch.team}];
  const double before = served;
  served += sign * static_cast<double>(batch.candidates) / static_cast<double>(std::max<int64_t>(1, batch.weight));
  return before;
}

void ReadyQueue::drop(const std::string& batch_id) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(batch_id);
  if (place == places_.end()) return;
  const auto ready = ready_.find(place->second.of);
  ready->second.batches.erase({place->second.batch.order, batch_id});
  if (ready->second.batches.empty()) ready_.erase(ready);
  places_.erase(place);
}

bool ReadyQueue::has_turn(const Request& request, const Device& device) const {
  const auto turn = turns_.find(request.machine);
  return turn == turns_.end() || turn->second.worker == request.worker || !takes_turns(device);
}

void ReadyQueue::begin_turn(const Request& request, const std::string& batch_id, const Device& device) {
  if (request.machine.empty() || !takes_turns(device)) return;
  on_turn_[batch_id] = request.machine;
  OnTurn& turn = turns_[request.machine];
  turn.worker = request.worker;
  ++turn.batches;
}

// Removes a batch from the turn of its machine. If no other batch is measured in this turn, ends the turn and returns
// true.
bool ReadyQueue::end_turn(const std::string& batch_id) {
  const auto of = on_turn_.find(batch_id);
  if (of == on_turn_.end()) return false;
  const auto turn = turns_.find(of->second);
  on_turn_.erase(of);
  if (--turn->second.batches > 0) return false;
  turns_.erase(turn);
  return true;
}

void ReadyQueue::over(const std::string& batch_id) {
  {
    const std::lock_guard lock(mutex_);
    if (!end_turn(batch_id)) return;
  }
  look();
}

std::shared_ptr<LeaseCall> ReadyQueue::wait(Request request, AcquireDone done) {
  auto call = std::make_shared<LeaseCall>();
  call->of = class_of(request.devices, request.team);
  call->request = std::move(request);
  call->done = std::move(done);
  const std::lock_guard lock(mutex_);
  call->arrival = ++arrivals_;
  settle(call);
  return call;
}

// Gives a call the batches that are ready for it, ends the call if its deadline has passed, or lets it wait.
void ReadyQueue::settle(const std::shared_ptr<LeaseCall>& call) {
  if (leaving_) return make_due(call);
  if (!paused()) {
    while (take_best(*call)) {
    }
  }
  if (!call->given.empty() || Clock::now() >= call->request.deadline) return make_due(call);
  call->state = LeaseCall::State::kWaiting;
  WorkerClass& waiting = waiting_[call->of];
  waiting.devices = call->request.devices;
  waiting.team = call->request.team;
  waiting.calls.emplace(call->arrival, call);
  const auto at = deadlines_.emplace(std::pair(call->request.deadline, call->arrival), call).first;
  // The threads wait until the earliest deadline, which is now that of this call, so they are woken.
  if (at == deadlines_.begin()) changed_.notify_all();
}

void ReadyQueue::cancel(const std::shared_ptr<LeaseCall>& call) {
  const std::lock_guard lock(mutex_);
  if (call->state == LeaseCall::State::kAnswered || call->cancelled) return;
  call->cancelled = true;
  if (call->state == LeaseCall::State::kWaiting) {
    stop_waiting(*call);
    make_due(call);
  } else if (call->state == LeaseCall::State::kDue) {
    give_back(*call);
  }
}

void ReadyQueue::look() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> classes;
  for (const auto& [of, ready] : ready_) classes.push_back(of);
  for (const std::string& of : classes) match(of);
}

void ReadyQueue::drain(bool on) {
  {
    const std::lock_guard lock(mutex_);
    draining_ = on;
  }
  if (!on) look();
}

void ReadyQueue::leave() {
  const std::lock_guard lock(mutex_);
  end_all();
}

std::map<std::string, int64_t> ReadyQueue::candidates() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int64_t> waiting;
  for (const auto& [id, place] : places_) waiting[place.batch.device.target] += place.batch.candidates;
  return waiting;
}

bool ReadyQueue::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void ReadyQueue::end_all() {
  leaving_ = true;
  for (const auto& call : due_) give_back(*call);
  while (!deadlines_.empty()) {
    const std::shared_ptr<LeaseCall> call = deadlines_.begin()->second;
    stop_waiting(*call);
    make_due(call);
  }
}

// Gives the batches of a class to waiting calls.
void ReadyQueue::match(const std::string& of) {
  if (waiting_.empty() || paused()) return;
  for (auto ready = ready_.find(of); ready != ready_.end(); ready = ready_.find(of)) {
    std::shared_ptr<LeaseCall> call;
    for (const auto& [order, batch_id] : ready->second.batches) {
      const Ready& batch = places_.at(batch_id).batch;
      call = longest_waiting(batch);
      if (call != nullptr || batch.avoid.empty())
        // Which calls suit a batch of a class depends only on its `avoid`: if no call suits a batch that all workers
        // may get, no call suits a later batch either.
        break;
    }
    if (call == nullptr) return;
    stop_waiting(*call);
    while (take_best(*call)) {
    }
    make_due(call);
  }
}

std::shared_ptr<LeaseCall> ReadyQueue::longest_waiting(const Ready& batch) const {
  std::shared_ptr<LeaseCall> first;
  for (const auto& [of, waiting] : waiting_) {
    if (!serves_team(waiting.team, batch.team)) continue;
    const auto fit = std::find_if(waiting.calls.begin(), waiting.calls.end(), [&](const auto& item) {
      const Request& by = item.second->request;
      return !bars(batch.avoid, by) && has_turn(by, batch.device);
    });
    if (fit == waiting.calls.end() || (first != nullptr && first->arrival < fit->first)) continue;
    if (any_serves(waiting.devices, batch.device)) first = fit->second;
  }
  return first;
}

bool ReadyQueue::take_best(LeaseCall& call) {
  if (static_cast<int>(call.given.size()) >= std::max(1, call.request.max)) return false;
  // The values by which batches are compared, in this order: priority (negated), candidates given to the team so far
  // (served_), order of the batch. The batch with the least values is given first.
  using Turn = std::tuple<int64_t, double, std::pair<Order, std::string>>;
  std::optional<Turn> best;
  auto of = ready_.end();
  for (auto at = ready_.begin(); at != ready_.end(); ++at) {
    const BatchClass& ready = at->second;
    if (!serves_team(call.request.team, ready.team) || !any_serves(call.request.devices, ready.device)) continue;
    if (!has_turn(call.request, ready.device)) continue;
    const auto fit = std::find_if(ready.batches.begin(), ready.batches.end(), [&](const auto& batch) {
      return !bars(places_.at(batch.second).batch.avoid, call.request);
    });
    if (fit == ready.batches.end()) continue;
    Turn turn{-ready.priority, served_.at({ready.priority, ready.team}), *fit};
    if (best && *best <= turn) continue;
    best = std::move(turn);
    of = at;
  }
  if (!best) return false;
  const std::pair<Order, std::string>& taken = std::get<2>(*best);
  const auto place = places_.find(taken.second);
  // A call gets a further batch only if that is allowed and no other call waits for it.
  if (!call.given.empty() &&
      (place->second.batch.alone || call.given.front().batch.alone || longest_waiting(place->second.batch) != nullptr))
    return false;
  turn_[of->second.priority] = charged(place->second.batch, 1);
  begin_turn(call.request, taken.second, place->second.batch.device);
  call.given.push_back({taken.second, std::move(place->second.batch)});
  places_.erase(place);
  of->second.batches.erase(taken);
  if (of->second.batches.empty()) ready_.erase(of);
  return true;
}

void ReadyQueue::stop_waiting(const LeaseCall& call) {
  const auto waiting = waiting_.find(call.of);
  waiting->second.calls.erase(call.arrival);
  if (waiting->second.calls.empty()) waiting_.erase(waiting);
  deadlines_.erase({call.request.deadline, call.arrival});
}

// Takes the batches from index `from` on away from a call and makes them ready for other calls.
void ReadyQueue::give_back(LeaseCall& call, size_t from) {
  std::vector<LeaseCall::Given> back(call.given.begin() + static_cast<ptrdiff_t>(from), call.given.end());
  call.given.resize(from);
  for (LeaseCall::Given& given : back) {
    charged(given.batch, -1);
    end_turn(given.batch_id);
    add(given.batch_id, std::move(given.batch));
  }
}

void ReadyQueue::make_due(std::shared_ptr<LeaseCall> call) {
  call->state = LeaseCall::State::kDue;
  due_.push_back(std::move(call));
  changed_.notify_one();
}

void ReadyQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!deadlines_.empty() && deadlines_.begin()->first.first <= Clock::now()) {
      const std::shared_ptr<LeaseCall> call = deadlines_.begin()->second;
      stop_waiting(*call);
      make_due(call);
    }
    if (!due_.empty()) {
      const std::shared_ptr<LeaseCall> call = std::move(due_.front());
      due_.pop_front();
      if (paused()) give_back(*call);  // gives back batches that the call got before the queue was paused
      call->state = LeaseCall::State::kAnswering;
      lock.unlock();
      answer(call);
      lock.lock();
    } else if (stopping_) {
      return;
    } else if (deadlines_.empty()) {
      changed_.wait(lock);
    } else {
      // The deadline is copied, since wait_until() reads it again at its end, when another thread may have erased it.
      const Clock::time_point until = deadlines_.begin()->first.first;
      changed_.wait_until(lock, until);
    }
  }
}

// Leases the batches that the call was given, and answers the call. While a call is being answered, only this thread
// uses its `given`.
void ReadyQueue::answer(const std::shared_ptr<LeaseCall>& call) {
  Acquired out;
  absl::Status status;
  size_t leased = 0;
  for (; leased < call->given.size(); ++leased) {
    auto grant = callbacks_.lease(call->given[leased].batch_id, call->request);
    status = grant.status();
    if (!status.ok()) break;
    if (*grant)
      out.leases.push_back(*std::move(*grant));
    else
      over(call->given[leased].batch_id);
  }
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    give_back(*call, leased);
    call->given.clear();
    cancelled = call->cancelled;
    if (out.leases.empty() && status.ok() && !cancelled && !leaving_ && Clock::now() < call->request.deadline)
      return settle(call);
    call->state = LeaseCall::State::kAnswered;
    if (leaving_ && out.leases.empty() && status.ok())
      status = absl::UnavailableError("the coordinator is going down; ask again");
    out.drain = draining_ && out.leases.empty();
  }
  if (cancelled) {
    for (const LeaseGrant& grant : out.leases)
      callbacks_.release(call->request.worker, {grant.lease_id, grant.attempt});
    call->done(absl::CancelledError("the caller has gone"));
  } else if (out.leases.empty() && !status.ok()) {
    call->done(status);
  } else {
    call->done(std::move(out));
  }
  call->done = nullptr;  // destroys the callback and what it holds
}

}  // namespace wl

#include "server/engine/leases.h"

#include <algorithm>
#include <random>

#include "server/engine/devices.h"

namespace wl {
namespace {

constexpr int kMaxFailures = 3;
constexpr auto kStuck = std::chrono::minutes(3);  // a lease without progress for so long is lost, renewed or not

std::string new_lease_id() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
}

Trial failed_trial(const Candidate& candidate, std::string message) {
  Trial trial;
  trial.trial = candidate.trial;
  trial.plan = candidate.plan;
  trial.outcome = Outcome::kRuntimeError;
  trial.message = std::move(message);
  return trial;
}

// Exactly one trial for every candidate, under the plan that was asked for.
std::vector<Trial> one_per_candidate(const Batch& batch, const std::vector<Trial>& reported) {
  std::vector<Trial> complete;
  for (const Candidate& candidate : batch.candidates) {
    const auto found =
        std::find_if(reported.begin(), reported.end(), [&](const Trial& t) { return t.trial == candidate.trial; });
    complete.push_back(found != reported.end() ? *found : failed_trial(candidate, "the worker did not report it"));
    complete.back().plan = candidate.plan;
  }
  return complete;
}

}  // namespace

Leases::Leases(Store* store, Workers* workers, const EventLoop* loop, Clock::duration term, bool quiet_while_busy,
               LeaseCallbacks callbacks)
    : store_(store),
      workers_(workers),
      loop_(loop),
      term_(term),
      quiet_while_busy_(quiet_while_busy),
      callbacks_(std::move(callbacks)) {}

void Leases::offer(Offer offer) {
  Item item;
  item.attempt = offer.row.attempt;
  if (offer.row.leased) {
    // Its worker may still measure it.
    item.state = Item::State::kLeased;
    item.lease_id = offer.row.lease_id;
    item.worker = offer.row.worker;
    item.moved = Clock::now();
    item.expires = item.moved + term_;
  }
  const std::string id = offer.row.id;
  item.offer = std::move(offer);
  const std::lock_guard lock(mutex_);
  items_.insert_or_assign(id, std::move(item));
  changed_.notify_all();
}

bool Leases::take_back(int64_t search_id, const std::string& batch_id, const std::string& known_lease,
                       bool leased_too) {
  std::string lease = known_lease;
  {
    const std::lock_guard lock(mutex_);
    if (const auto item = items_.find(batch_id); item != items_.end()) {
      if (item->second.state == Item::State::kLeasing) return false;
      if (item->second.state == Item::State::kLeased && !leased_too) return false;
      lease = item->second.lease_id;
    }
  }
  const auto dropped = store_->drop_batch(batch_id);
  if (!dropped.ok() || !*dropped) return false;
  const std::lock_guard lock(mutex_);
  items_.erase(batch_id);
  expected_.erase(search_id);
  if (!lease.empty()) cancelled_.insert(lease);
  return true;
}

void Leases::expect(int64_t search_id) {
  const std::lock_guard lock(mutex_);
  expected_.insert(search_id);
}

void Leases::arrived(int64_t search_id) {
  const std::lock_guard lock(mutex_);
  expected_.erase(search_id);
}

void Leases::recovered() {
  const std::lock_guard lock(mutex_);
  recovering_ = false;
}

Leases::Items::iterator Leases::best_for(const std::vector<Device>& devices) {
  auto best = items_.end();
  for (auto at = items_.begin(); at != items_.end(); ++at) {
    const Item& item = at->second;
    if (item.state != Item::State::kReady) continue;
    if (best != items_.end() && best->second.offer.order <= item.offer.order) continue;
    if (std::any_of(devices.begin(), devices.end(), [&](const Device& own) { return serves(own, item.offer.device); }))
      best = at;
  }
  return best;
}

std::optional<LeaseGrant> Leases::take(const std::string& process, const std::vector<Device>& devices,
                                       std::unique_lock<std::mutex>& lock) {
  auto best = best_for(devices);
  if (best == items_.end()) return std::nullopt;
  const std::string id = best->first;
  const std::string lease_id = new_lease_id();
  best->second.state = Item::State::kLeasing;
  lock.unlock();
  const auto attempt = store_->lease_batch(id, lease_id, process);
  if (!attempt.ok()) callbacks_.store_failed(attempt.status());
  lock.lock();
  best = items_.find(id);
  if (best == items_.end()) return std::nullopt;
  Item& item = best->second;
  if (!attempt.ok()) {
    item.state = Item::State::kReady;
    return std::nullopt;
  }
  item.state = Item::State::kLeased;
  item.lease_id = lease_id;
  item.attempt = *attempt;
  item.worker = process;
  item.moved = Clock::now();
  item.expires = item.moved + term_;
  return LeaseGrant{lease_id, *attempt, item.offer.batch};
}

absl::StatusOr<Acquired> Leases::acquire(const std::string& name, uint64_t epoch, int max, Clock::time_point deadline) {
  const Workers::Waiting waiting(workers_, name, epoch);
  Acquired out;
  for (;;) {
    const std::optional<std::vector<Device>> devices = workers_->heard(name, epoch);
    if (!devices) {
      return absl::FailedPreconditionError(
          cat("worker ", name, ": is not registered under epoch ", epoch, "; register again"));
    }
    std::unique_lock lock(mutex_);
    out.drain = draining_;
    if (out.drain) return out;
    const bool quiet = quiet_while_busy_ && loop_->busy();
    while (!quiet && static_cast<int>(out.leases.size()) < std::max(1, max)) {
      auto grant = take(process_of(name, epoch), *devices, lock);
      if (!grant) break;
      out.leases.push_back(*std::move(grant));
    }
    if (!out.leases.empty() || Clock::now() >= deadline) return out;
    changed_.wait_until(lock, deadline);
  }
}

RenewOutcome Leases::renew(const LeaseRef& lease, const std::string& phase, int64_t done) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (cancelled_.contains(lease.lease_id)) return RenewOutcome::kCancel;
  for (auto& [id, item] : items_) {
    if (item.lease_id != lease.lease_id || item.attempt != lease.attempt || item.state != Item::State::kLeased)
      continue;
    const std::string progress = cat(phase, " ", done);
    if (progress != item.progress) {
      item.progress = progress;
      item.moved = now;
    }
    if (now - item.moved > kStuck) return RenewOutcome::kLost;
    item.expires = now + term_;
    return RenewOutcome::kOk;
  }
  return waits_for_searches() ? RenewOutcome::kOk : RenewOutcome::kLost;
}

absl::StatusOr<ReportOutcome> Leases::report(const std::string& batch_id, const LeaseRef& lease,
                                             std::vector<Trial> trials) {
  int64_t search_id = -1;
  const std::shared_lock judging(taking_up_);
  {
    const std::lock_guard lock(mutex_);
    const auto item = items_.find(batch_id);
    if (item == items_.end() && waits_for_searches())
      return absl::UnavailableError("the coordinator has just started; report again");
    if (item != items_.end()) {
      search_id = item->second.offer.search_id;
      trials = one_per_candidate(*item->second.offer.batch, trials);
    }
  }
  const auto outcome = store_->report(batch_id, lease.lease_id, lease.attempt, trials);
  if (!outcome.ok()) callbacks_.store_failed(outcome.status());
  if (outcome.ok() && *outcome == ReportOutcome::kAccepted) {
    // The loop is busy from here on, so no lease slips in before the search has looked at the trials.
    callbacks_.stored(search_id, batch_id, trials);
    const std::lock_guard lock(mutex_);
    items_.erase(batch_id);
  }
  return outcome;
}

void Leases::release(const LeaseRef& lease) {
  Owned owned{.batch_id = {}, .lease = lease};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.lease_id == lease.lease_id && item.attempt == lease.attempt) owned.batch_id = id;
    }
  }
  if (!owned.batch_id.empty()) end(owned, false);
}

int Leases::held_by(const std::string& process) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(items_.begin(), items_.end(), [&](const auto& entry) {
    return entry.second.state == Item::State::kLeased && entry.second.worker == process;
  }));
}

std::vector<Leases::Owned> Leases::of_older_processes(const std::string& name, uint64_t epoch) const {
  const std::string process = process_of(name, epoch), prefix = cat(name, "#");
  std::vector<Owned> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, item] : items_) {
    if (item.state == Item::State::kLeased && item.worker.starts_with(prefix) && item.worker != process)
      out.push_back({id, {item.lease_id, item.attempt}});
  }
  return out;
}

void Leases::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  changed_.notify_all();
}

bool Leases::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void Leases::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Leases::expire() {
  std::vector<Owned> over;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.state == Item::State::kLeased && item.expires < Clock::now())
        over.push_back({id, {item.lease_id, item.attempt}});
    }
  }
  for (const Owned& owned : over) end(owned, true);
}

void Leases::end(const Owned& owned, bool failed) {
  const auto failures = store_->release_lease(owned.lease.lease_id, owned.lease.attempt, failed);
  if (!failures.ok()) return callbacks_.store_failed(failures.status());
  std::shared_ptr<const Batch> batch;
  int64_t search_id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto item = items_.find(owned.batch_id);
    if (item == items_.end() || item->second.lease_id != owned.lease.lease_id) return;
    item->second.state = Item::State::kReady;
    item->second.lease_id.clear();
    item->second.worker.clear();
    if (*failures < kMaxFailures) {
      changed_.notify_all();
      return;
    }
    batch = item->second.offer.batch;
    search_id = item->second.offer.search_id;
    items_.erase(item);
  }
  std::vector<Trial> trials;
  for (const Candidate& candidate : batch->candidates)
    trials.push_back(failed_trial(candidate, cat("given up: ", kMaxFailures, " workers were lost over this batch")));
  const absl::Status abandoned = store_->abandon_batch(owned.batch_id, trials);
  if (!abandoned.ok()) return callbacks_.store_failed(abandoned);
  callbacks_.stored(search_id, owned.batch_id, trials);
}

}  // namespace wl

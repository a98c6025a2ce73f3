#include "server/engine/leases.h"

#include <algorithm>
#include <random>

#include "server/engine/devices.h"

namespace wl {
namespace {

constexpr auto kStuck = std::chrono::minutes(3);  // a lease without progress for so long is lost, renewed or not

std::string new_lease_id() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
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

Trial failed_trial(const Candidate& candidate, std::string message) {
  Trial trial;
  trial.trial = candidate.trial;
  trial.plan = candidate.plan;
  trial.outcome = Outcome::kRuntimeError;
  trial.message = std::move(message);
  return trial;
}

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
  item.lost_on = offer.row.lost_on;
  if (offer.row.leased) {
    // Its worker may still measure it.
    item.restored = true;
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

bool Leases::take_back(const std::string& batch_id, const std::string& known_lease, bool leased_too) {
  std::string lease = known_lease;
  {
    const std::lock_guard lock(mutex_);
    if (const auto item = items_.find(batch_id); item != items_.end()) {
      if (item->second.state == Item::State::kLeasing || item->second.state == Item::State::kJudged) return false;
      if (item->second.state == Item::State::kLeased && !leased_too) return false;
      lease = item->second.lease_id;
    }
  }
  const auto dropped = store_->drop_batch(batch_id);
  if (!dropped.ok() || !*dropped) return false;
  const std::lock_guard lock(mutex_);
  items_.erase(batch_id);
  if (!lease.empty()) cancelled_.emplace(lease, Clock::now());
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

Leases::Items::iterator Leases::best_for(const std::string& name, const std::vector<Device>& devices) {
  auto best = items_.end();
  for (auto at = items_.begin(); at != items_.end(); ++at) {
    const Item& item = at->second;
    if (item.state != Item::State::kReady || item.avoid.contains(name)) continue;
    if (best != items_.end() && best->second.offer.order <= item.offer.order) continue;
    if (std::any_of(devices.begin(), devices.end(), [&](const Device& own) { return serves(own, item.offer.device); }))
      best = at;
  }
  return best;
}

std::optional<LeaseGrant> Leases::take(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                       std::unique_lock<std::mutex>& lock) {
  const std::string process = process_of(name, epoch);
  auto best = best_for(name, devices);
  if (best == items_.end()) return std::nullopt;
  const std::string id = best->first;
  const std::string lease_id = new_lease_id();
  best->second.state = Item::State::kLeasing;
  lock.unlock();
  const auto attempt = store_->lease_batch(id, lease_id, process);
  lock.lock();
  best = items_.find(id);
  if (best == items_.end()) return std::nullopt;
  Item& item = best->second;
  if (!attempt.ok()) {
    item.state = Item::State::kReady;
    const int64_t search_id = item.offer.search_id;
    lock.unlock();
    callbacks_.store_failed(search_id, attempt.status());
    lock.lock();
    return std::nullopt;
  }
  item.state = Item::State::kLeased;
  item.lease_id = lease_id;
  item.attempt = *attempt;
  item.worker = process;
  item.restored = false;
  item.progress.clear();
  item.granted = item.moved = Clock::now();
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
    if (leaving_) return absl::UnavailableError("the coordinator is going down; ask again");
    out.drain = draining_;
    const bool quiet = draining_ || (quiet_while_busy_ && loop_->busy());
    while (!quiet && static_cast<int>(out.leases.size()) < std::max(1, max)) {
      auto grant = take(name, epoch, *devices, lock);
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
    item.restored = false;
    return RenewOutcome::kOk;
  }
  return waits_for_searches() ? RenewOutcome::kOk : RenewOutcome::kLost;
}

absl::StatusOr<ReportOutcome> Leases::report(const std::string& batch_id, const LeaseRef& lease,
                                             std::vector<Trial> trials) {
  std::optional<int64_t> search_id;
  {
    const std::lock_guard lock(mutex_);
    if (const auto item = items_.find(batch_id); item != items_.end()) {
      search_id = item->second.offer.search_id;
      trials = one_per_candidate(*item->second.offer.batch, trials);
    }
  }
  if (!search_id) {
    // Only the results of a batch that a live search has offered are stored. So a search that is read from the store
    // meanwhile finds either all trials of a batch or the batch still to come.
    WL_ASSIGN_OR_RETURN(const std::optional<ReportOutcome> outcome,
                        store_->reported(batch_id, lease.lease_id, lease.attempt));
    if (outcome) return *outcome;
    return absl::UnavailableError("the search of this batch is not open yet; report again");
  }
  const auto outcome = store_->report(batch_id, lease.lease_id, lease.attempt, trials);
  if (!outcome.ok()) callbacks_.store_failed(*search_id, outcome.status());
  if (outcome.ok() && *outcome == ReportOutcome::kAccepted) {
    // The loop is busy from here on, so no lease slips in before the search has looked at the trials.
    callbacks_.stored(*search_id, batch_id, trials);
    const std::lock_guard lock(mutex_);
    ++reports_;
    items_.erase(batch_id);
  }
  return outcome;
}

void Leases::release(const LeaseRef& lease, LeaseEnd why) {
  Owned owned{.batch_id = {}, .lease = lease};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.lease_id == lease.lease_id && item.attempt == lease.attempt) owned.batch_id = id;
    }
  }
  if (!owned.batch_id.empty()) end(owned, why);
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

void Leases::drain(bool on) {
  const std::lock_guard lock(mutex_);
  draining_ = on;
  changed_.notify_all();
}

void Leases::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  changed_.notify_all();
}

void Leases::upload_failed(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  upload_failure_.emplace(Clock::now(), status);
}

bool Leases::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void Leases::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace wl

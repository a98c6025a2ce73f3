#include "server/engine/leases.h"

#include <algorithm>
#include <random>

namespace wl {
namespace {

std::string new_lease_id() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
}

absl::Status not_registered(const std::string& name, uint64_t epoch) {
  return absl::FailedPreconditionError(
      cat("worker ", name, ": is not registered under epoch ", epoch, "; register again"));
}

// Whether `bound` is the error bound of a sample in the batch's checks; true if the checks have no samples.
bool is_bound_of(const Batch& batch, double bound) {
  bool any = false;
  for (const Check& check : batch.checks) {
    any |= !check.samples.empty();
    if (std::any_of(check.samples.begin(), check.samples.end(),
                    [&](const Check::Sample& sample) { return sample.bound == bound; }))
      return true;
  }
  return !any;
}

// Returns the trial, or an error in its place if the worker's values are impossible: a correct result with an error
// above its bound, a bound that no sample of the checks has, or a time below `floor_ns`. No other value of such a
// trial is used either.
Trial believed(const PlannedTrial& of, const Batch& batch, const Trial& trial, double floor_ns) {
  if (trial.outcome != Outcome::kCorrect) return trial;
  const bool exact = trial.max_error == 0 && trial.bound == 0;
  if (!(trial.max_error <= trial.bound) || (!exact && !is_bound_of(batch, trial.bound)))
    return failed_trial(of, absl::StrFormat("not believed: it is said to be right with an error of %g and a bound of "
                                            "%g, which no sample of its check has; check the worker",
                                            trial.max_error, trial.bound));
  if (trial.samples_ns.empty()) return trial;
  const std::string& target = batch.candidates.front().source.target;
  const int64_t least = *std::min_element(trial.samples_ns.begin(), trial.samples_ns.end());
  if (static_cast<double>(least) >= floor_ns) return trial;
  return failed_trial(of, absl::StrFormat("not believed: a sample of %d ns, while no kernel of this group can "
                                          "take less than %.1f ns on %s; check the worker and its clock",
                                          least, floor_ns, target));
}

// Returns exactly one trial for each candidate or chain, with the plan that was asked for. A candidate without a
// reported trial gets an error.
std::vector<Trial> one_for_each(const Batch& batch, const std::vector<Trial>& reported, double floor_ns) {
  std::vector<Trial> complete;
  for (const PlannedTrial& of : reported_of(batch)) {
    const auto found =
        std::find_if(reported.begin(), reported.end(), [&](const Trial& t) { return t.trial == of.trial; });
    complete.push_back(found != reported.end() ? believed(of, batch, *found, floor_ns)
                                               : failed_trial(of, "the worker did not report it"));
    complete.back().plan = of.plan;
  }
  return complete;
}

}  // namespace

bool lasts(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

std::vector<PlannedTrial> reported_of(const Batch& batch) {
  std::vector<PlannedTrial> all;
  for (const KernelChain& chain : batch.chains) all.push_back({chain.trial, chain.plan});
  if (!all.empty()) return all;
  for (const Candidate& candidate : batch.candidates) all.push_back({candidate.trial, candidate.plan});
  return all;
}

Trial failed_trial(const PlannedTrial& of, std::string message) {
  Trial trial;
  trial.trial = of.trial;
  trial.plan = of.plan;
  trial.outcome = Outcome::kRuntimeError;
  trial.message = std::move(message);
  return trial;
}

Leases::Leases(Store* store, Workers* workers, const EventLoop* loop, Clock::duration term, Clock::duration stuck,
               double patience_s, bool quiet_while_busy, LeaseCallbacks callbacks)
    : store_(store),
      workers_(workers),
      term_(term),
      stuck_(stuck),
      callbacks_(std::move(callbacks)),
      overdue_(patience_s),
      ready_({.paused = [=] { return quiet_while_busy && loop->busy(); },
              .lease = [this](const std::string& id, const ReadyQueue::Request& request) { return lease(id, request); },
              .release = [this](const std::string& worker,
                                const LeaseRef& lease) { release(worker, lease, LeaseEnd::kReleased); }}) {}

void Leases::offer(Offer offer) {
  Item item;
  item.attempt = offer.row.attempt;
  item.lost_on = offer.row.lost_on;
  if (offer.row.leased) {
    // A worker may still be measuring the batch, so the lease that the store has for it gets a full new term.
    item.restored = true;
    item.state = Item::State::kLeased;
    item.lease_id = offer.row.lease_id;
    item.worker = offer.row.worker;
    item.moved = Clock::now();
    item.expires = item.moved + term_;
  }
  const std::string id = offer.row.id;
  item.offer = std::move(offer);
  item.avoid = avoided(item);
  const std::lock_guard lock(mutex_);
  const Item& added = items_.insert_or_assign(id, std::move(item)).first->second;
  if (added.state == Item::State::kReady) put_ready(id, added);
}

void Leases::set_rules(const std::string& batch_id, const TeamRules& rules) {
  const std::lock_guard lock(mutex_);
  const auto at = items_.find(batch_id);
  if (at == items_.end()) return;
  at->second.offer.rules = rules;
  if (at->second.state != Item::State::kReady) return;
  ready_.drop(batch_id);
  put_ready(batch_id, at->second);
}

bool Leases::bars(const Item& item, const std::string& name, const std::string& machine) {
  const std::set<std::string>& not_by = item.offer.not_by;
  return item.unable.contains(name) || not_by.contains(principal_of(name)) || not_by.contains(on_machine(machine));
}

bool Leases::take_back(const std::string& batch_id, const std::string& known_lease, bool leased_too) {
  std::string lease = known_lease;
  {
    const std::lock_guard lock(mutex_);
    if (const auto item = items_.find(batch_id); item != items_.end()) {
      if (item->second.state == Item::State::kLeasing || item->second.state == Item::State::kJudged) return false;
      if (item->second.state == Item::State::kLeased && !leased_too && !item->second.waits()) return false;
      lease = item->second.lease_id;
    }
  }
  const auto dropped = store_->drop_batch(batch_id);
  if (!dropped.ok() || !*dropped) return false;
  const std::lock_guard lock(mutex_);
  if (const auto item = items_.find(batch_id); item != items_.end() && !item->second.worker.empty())
    next_of(item->second.worker);
  items_.erase(batch_id);
  ready_.drop(batch_id);
  ready_.over(batch_id);
  if (!lease.empty()) cancelled_.emplace(lease, Clock::now());
  return true;
}

void Leases::expect(int64_t search_id) {
  const std::lock_guard lock(mutex_);
  expected_.insert(search_id);
}

void Leases::arrived(int64_t search_id) {
  const std::lock_guard lock(mutex_);
  if (expected_.erase(search_id) > 0) settled_ = Clock::now();
}

void Leases::recovered() {
  const std::lock_guard lock(mutex_);
  recovering_ = false;
  settled_ = Clock::now();
}

// Leases a batch to the worker's call to which the ready queue assigned it. Returns nullopt if the batch is not ready
// any more.
absl::StatusOr<std::optional<LeaseGrant>> Leases::lease(const std::string& batch_id,
                                                        const ReadyQueue::Request& request) {
  if (!workers_->heard(request.worker, request.epoch)) return not_registered(request.worker, request.epoch);
  const std::string process = process_of(request.worker, request.epoch), lease_id = new_lease_id();
  {
    const std::lock_guard lock(mutex_);
    const auto item = items_.find(batch_id);
    if (item == items_.end() || item->second.state != Item::State::kReady) return std::nullopt;
    item->second.state = Item::State::kLeasing;
  }
  const auto attempt = store_->lease_batch(batch_id, lease_id, process);
  std::unique_lock lock(mutex_);
  const auto found = items_.find(batch_id);
  if (found == items_.end()) return std::nullopt;
  Item& item = found->second;
  if (!attempt.ok()) {
    item.state = Item::State::kReady;
    const int64_t search_id = item.offer.search_id;
    lock.unlock();
    if (absl::IsNotFound(attempt.status())) return std::nullopt;  // NotFound: a search is taking the batch back
    callbacks_.store_failed(search_id, attempt.status());
    return attempt.status();
  }
  item.state = Item::State::kLeased;
  item.lease_id = lease_id;
  item.attempt = *attempt;
  item.worker = process;
  item.restored = false;
  item.after = {};
  item.step.clear();
  item.progress.clear();
  item.granted = item.moved = Clock::now();
  item.expires = item.moved + term_;
  return LeaseGrant{lease_id, *attempt, item.offer.batch};
}

std::shared_ptr<LeaseCall> Leases::acquire(const std::string& name, uint64_t epoch, int max, Clock::time_point deadline,
                                           AcquireDone done) {
  const std::optional<Workers::Served> served = workers_->heard(name, epoch);
  // The callback `answer` holds a Waiting object, and lives as long as the worker's call waits. So the worker counts
  // as alive meanwhile.
  auto waiting = std::make_shared<Workers::Waiting>(workers_, name, epoch);
  auto answer = [waiting, done = std::move(done)](absl::StatusOr<Acquired> out) { done(std::move(out)); };
  if (!served) {
    answer(not_registered(name, epoch));
    return nullptr;
  }
  return ready_.wait({.worker = name,
                      .team = served->team,
                      .machine = served->machine,
                      .epoch = epoch,
                      .devices = served->devices,
                      .max = max,
                      .deadline = deadline},
                     std::move(answer));
}

bool Leases::held_by(const std::string& principal) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(items_.begin(), items_.end(), [&](const auto& entry) {
    return entry.second.state == Item::State::kLeased && principal_of(entry.second.worker) == principal;
  });
}

RenewOutcome Leases::renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (cancelled_.contains(lease.lease_id)) return RenewOutcome::kCancel;
  for (auto& [id, item] : items_) {
    if (item.lease_id != lease.lease_id || item.attempt != lease.attempt || item.state != Item::State::kLeased)
      continue;
    if (name_of_process(item.worker) != worker) return RenewOutcome::kLost;
    const std::string progress = cat(phase, " ", done);
    if (progress != item.progress) {
      item.step = phase;
      item.progress = progress;
      item.moved = now;
    }
    if (now - item.moved > stuck_) return RenewOutcome::kLost;
    item.expires = now + term_;
    item.restored = false;
    return RenewOutcome::kOk;
  }
  return waits_for_searches() ? RenewOutcome::kOk : RenewOutcome::kLost;
}

absl::StatusOr<ReportOutcome> Leases::report(const std::string& by, const std::string& batch_id, const LeaseRef& lease,
                                             std::vector<Trial> trials) {
  std::optional<int64_t> search_id;
  std::string worker;
  {
    const std::lock_guard lock(mutex_);
    if (const auto item = items_.find(batch_id); item != items_.end()) {
      search_id = item->second.offer.search_id;
      worker = item->second.worker;
      // A worker that does not hold the lease gets the same answer as one that reports too late.
      if (item->second.lease_id == lease.lease_id && name_of_process(worker) != by) return ReportOutcome::kStale;
      trials = one_for_each(*item->second.offer.batch, trials, item->second.offer.floor_ns);
    }
  }
  if (!search_id) {
    // Results are stored only if a live search has offered the batch. So a search that is being read from the store
    // finds either all trials of the batch, or the batch still open.
    WL_ASSIGN_OR_RETURN(const std::optional<ReportOutcome> outcome,
                        store_->reported(batch_id, lease.lease_id, lease.attempt));
    if (outcome) return *outcome;
    const std::lock_guard lock(mutex_);
    // A job may open a search some time after the restart. But it may also have decided otherwise, and then nobody
    // offers the batch again.
    if (!waits_for_searches() && Clock::now() - settled_ > term_) return ReportOutcome::kStale;
    return absl::UnavailableError("the search of this batch is not open yet; report again");
  }
  const auto outcome = store_->report(batch_id, lease.lease_id, lease.attempt, trials);
  if (!outcome.ok()) callbacks_.store_failed(*search_id, outcome.status());
  if (outcome.ok() && *outcome == ReportOutcome::kAccepted) {
    // The event that `stored` posts keeps the event loop busy, so in embedded mode no lease is given before the search
    // has seen the trials.
    callbacks_.stored(*search_id, batch_id, trials, worker);
    const std::lock_guard lock(mutex_);
    ++reports_;
    if (const auto item = items_.find(batch_id); item != items_.end() && !item->second.restored)
      overdue_.reported(item->second.offer.device.fingerprint(), *item->second.offer.batch,
                        item->second.held_s(Clock::now()));
    items_.erase(batch_id);
    ready_.over(batch_id);
    next_of(worker);
  }
  return outcome;
}

void Leases::next_of(const std::string& process) {
  for (auto& [id, item] : items_)
    if (item.state == Item::State::kLeased && item.worker == process) item.after = Clock::now();
}

void Leases::release(const std::string& worker, const LeaseRef& lease, LeaseEnd why) {
  Owned owned{.batch_id = {}, .lease = lease};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.lease_id == lease.lease_id && item.attempt == lease.attempt && name_of_process(item.worker) == worker)
        owned.batch_id = id;
    }
  }
  if (!owned.batch_id.empty()) end(owned, why);
}

std::map<std::string, std::vector<WorkerDoing>> Leases::doing() const {
  const Clock::time_point now = Clock::now();
  std::map<std::string, std::vector<WorkerDoing>> out;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, item] : items_) {
      if (item.state != Item::State::kLeased) continue;
      out[item.worker].push_back({.target = item.offer.device.target,
                                  .step = item.step,
                                  .phase = item.offer.batch->phase,
                                  .candidates = static_cast<int>(item.offer.batch->candidates.size()),
                                  .seconds = item.held_s(now),
                                  .search_id = item.offer.search_id});
    }
  }
  for (auto& [process, all] : out)
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  return out;
}

std::vector<Leases::Owned> Leases::of_older_processes(const std::string& name, uint64_t epoch) const {
  return owned_by([process = process_of(name, epoch), prefix = cat(name, "#")](const std::string& owner) {
    return owner.starts_with(prefix) && owner != process;
  });
}

std::vector<Leases::Owned> Leases::of_process(const std::string& name, uint64_t epoch) const {
  return owned_by([process = process_of(name, epoch)](const std::string& owner) { return owner == process; });
}

std::vector<Leases::Owned> Leases::owned_by(const std::function<bool(const std::string&)>& is_of) const {
  std::vector<Owned> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, item] : items_) {
    if (item.state == Item::State::kLeased && is_of(item.worker)) out.push_back({id, {item.lease_id, item.attempt}});
  }
  return out;
}

void Leases::upload_failed(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  upload_failure_.emplace(Clock::now(), status);
}

}  // namespace wl

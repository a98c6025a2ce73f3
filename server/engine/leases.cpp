// Workers and their leases. A batch is leased in the store before it leaves; who reports is decided there too.
#include <algorithm>
#include <random>

#include "server/engine/state.h"

namespace wl {
namespace {

constexpr int kMaxFailures = 3;
constexpr auto kStuck = std::chrono::minutes(3);  // a lease whose progress stands still is lost, renewed or not

std::string new_lease_id() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
}

Clock::duration term(double lease_s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(lease_s));
}

std::string process_of(const std::string& name, uint64_t epoch) {
  return cat(name, "#", epoch);
}

// Whether a GPU runs the code of another architecture: CUDA's runs on later ones of the same generation, unless it uses
// what only one has ("sm_90a").
bool runs_code_of(std::string_view device, std::string_view code) {
  constexpr std::string_view kCuda = "cuda:sm_";
  if (!device.starts_with(kCuda) || !code.starts_with(kCuda)) return device == code;
  const auto number = [&](std::string_view name) {
    int value = 0;
    for (char c : name.substr(kCuda.size())) value = c >= '0' && c <= '9' ? 10 * value + (c - '0') : value;
    return value;
  };
  return code.back() != 'a' && number(code) / 10 == number(device) / 10 && number(code) <= number(device);
}

}  // namespace

std::optional<Device> device_as(const Device& device, const std::string& target) {
  const std::string family = device.target.substr(0, device.target.find(':'));
  if (target == device.target || target == family) return device;
  const auto row = target_named(target);
  const auto best = target_named(device.target);
  if (!row.ok() || !best.ok()) return std::nullopt;
  const bool simulates = (*row)->family == "sim" && (*best)->family == "cpu";
  if ((*best)->family != "cpu" && !runs_code_of(device.target, target)) return std::nullopt;
  if (!simulates && ((*row)->family != (*best)->family || (*row)->lanes > (*best)->lanes)) return std::nullopt;
  Device narrower = device;
  narrower.target = target;
  return narrower;
}

bool serves(const Device& worker, const Device& wanted) {
  const auto device = device_as(worker, wanted.target);
  return device && device->fingerprint() == wanted.fingerprint() &&
         device->compiler_versions == wanted.compiler_versions;
}

bool Engine::Impl::alive(const WorkerState& worker) const {
  return worker.waiting > 0 || Clock::now() - worker.seen < 2 * term(options.lease_s);
}

int Engine::Impl::workers_for(const Device& device) {
  const std::lock_guard lock(mutex);
  int count = 0;
  for (const auto& [name, worker] : workers) {
    count += alive(worker) && std::any_of(worker.devices.begin(), worker.devices.end(),
                                          [&](const Device& own) { return serves(own, device); });
  }
  return count;
}

absl::Status Engine::register_worker(const std::string& name, uint64_t epoch, const std::vector<Device>& devices) {
  if (name.empty() || devices.empty()) return invalid("worker \"", name, "\": needs a name and at least one device");
  for (const Device& device : devices) WL_RETURN_IF_ERROR(target_named(device.target).status());
  const int64_t now_ms = unix_ms_now();
  if (const absl::Status status = impl_->store->put_worker(name, epoch, devices, now_ms); !status.ok()) {
    impl_->note_write(status);
    return status;
  }
  std::vector<std::pair<std::string, LeaseRef>> orphans;
  {
    const std::lock_guard lock(impl_->mutex);
    WorkerState& worker = impl_->workers[name];
    worker.epoch = epoch;
    worker.devices = devices;
    worker.seen = Clock::now();
    worker.seen_ms = now_ms;
    // An older process of this name is gone, and what it was doing need not wait for its lease to end.
    for (const auto& [id, item] : impl_->outstanding) {
      if (item.state == Outstanding::State::kLeased && item.worker.starts_with(name + "#") &&
          item.worker != process_of(name, epoch)) {
        orphans.push_back({id, {item.lease_id, item.attempt}});
      }
    }
  }
  impl_->post([impl = impl_.get(), orphans] {
    for (const auto& [id, lease] : orphans) impl->requeue(id, lease, true);
    impl->plan_queued();
  });
  return absl::OkStatus();
}

std::optional<LeaseGrant> Engine::Impl::take(const std::string& name, uint64_t epoch,
                                             std::unique_lock<std::mutex>& lock) {
  const auto worker = workers.find(name);
  if (worker == workers.end()) return std::nullopt;
  auto best = outstanding.end();
  for (auto at = outstanding.begin(); at != outstanding.end(); ++at) {
    if (at->second.state != Outstanding::State::kReady) continue;
    if (best != outstanding.end() && best->second.order <= at->second.order) continue;
    const auto& devices = worker->second.devices;
    if (std::any_of(devices.begin(), devices.end(), [&](const Device& own) { return serves(own, at->second.device); }))
      best = at;
  }
  if (best == outstanding.end()) return std::nullopt;
  const std::string id = best->first;
  const std::string lease_id = new_lease_id();
  const std::string process = process_of(name, epoch);
  best->second.state = Outstanding::State::kLeasing;
  lock.unlock();
  const auto attempt = store->lease_batch(id, lease_id, process);
  note_write(attempt.status());
  lock.lock();
  best = outstanding.find(id);
  if (best == outstanding.end()) return std::nullopt;
  Outstanding& item = best->second;
  if (!attempt.ok()) {
    item.state = Outstanding::State::kReady;
    return std::nullopt;
  }
  item.state = Outstanding::State::kLeased;
  item.lease_id = lease_id;
  item.attempt = *attempt;
  item.worker = process;
  item.moved = Clock::now();
  item.expires = item.moved + term(options.lease_s);
  return LeaseGrant{lease_id, *attempt, item.batch};
}

absl::StatusOr<Acquired> Engine::acquire(const std::string& name, uint64_t epoch, int max,
                                         std::chrono::milliseconds wait) {
  const Clock::time_point deadline = Clock::now() + wait;
  Acquired out;
  std::unique_lock lock(impl_->mutex);
  const auto registered = [&]() -> WorkerState* {
    const auto worker = impl_->workers.find(name);
    return worker == impl_->workers.end() || worker->second.epoch != epoch ? nullptr : &worker->second;
  };
  for (;;) {
    WorkerState* worker = registered();
    if (worker == nullptr) {
      return absl::FailedPreconditionError(
          cat("worker ", name, ": is not registered under epoch ", epoch, "; register again"));
    }
    worker->seen = Clock::now();
    worker->seen_ms = unix_ms_now();
    out.drain = impl_->draining;
    if (out.drain) return out;
    const bool disturbed = impl_->options.share_machine && impl_->computing > 0;
    while (!disturbed && static_cast<int>(out.leases.size()) < std::max(1, max)) {
      auto grant = impl_->take(name, epoch, lock);
      if (!grant) break;
      out.leases.push_back(*std::move(grant));
    }
    if (!out.leases.empty() || Clock::now() >= deadline) break;
    worker = registered();
    if (worker == nullptr) continue;
    ++worker->waiting;
    impl_->work_changed.wait_until(lock, deadline);
    if (worker = registered(); worker != nullptr && worker->waiting > 0) --worker->waiting;
  }
  if (out.leases.empty()) {
    const WorkerState* worker = registered();
    out.idle = std::none_of(impl_->views.begin(), impl_->views.end(), [&](const auto& view) {
      if (is_done(view.second->job.state)) return false;
      const auto& device = view.second->job.device;
      return !device || (worker != nullptr && std::any_of(worker->devices.begin(), worker->devices.end(),
                                                          [&](const Device& own) { return serves(own, *device); }));
    });
  }
  return out;
}

RenewOutcome Engine::renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done) {
  const std::lock_guard lock(impl_->mutex);
  const Clock::time_point now = Clock::now();
  if (const auto known = impl_->workers.find(worker); known != impl_->workers.end()) known->second.seen = now;
  if (impl_->cancelled.contains(lease.lease_id)) return RenewOutcome::kCancel;
  for (auto& [id, item] : impl_->outstanding) {
    if (item.lease_id != lease.lease_id || item.attempt != lease.attempt || item.state != Outstanding::State::kLeased)
      continue;
    const std::string progress = cat(phase, " ", done);
    if (progress != item.progress) {
      item.progress = progress;
      item.moved = now;
    }
    if (now - item.moved > kStuck) return RenewOutcome::kLost;
    item.expires = now + term(impl_->options.lease_s);
    return RenewOutcome::kOk;
  }
  return impl_->recovering || !impl_->rebuilding.empty() ? RenewOutcome::kOk : RenewOutcome::kLost;
}

absl::StatusOr<ReportOutcome> Engine::report(const std::string& batch_id, const LeaseRef& lease,
                                             std::vector<Trial> trials) {
  int64_t search_id = -1;
  const std::shared_lock judging(impl_->taking_up);
  {
    const std::lock_guard lock(impl_->mutex);
    const auto item = impl_->outstanding.find(batch_id);
    if (item == impl_->outstanding.end() && (impl_->recovering || !impl_->rebuilding.empty())) {
      return absl::UnavailableError("the coordinator has just started; report again");
    }
    if (item != impl_->outstanding.end()) {
      search_id = item->second.search_id;
      // Exactly one trial for every candidate, under the plan that was asked for.
      std::vector<Trial> complete;
      for (const Candidate& candidate : item->second.batch->candidates) {
        const auto found =
            std::find_if(trials.begin(), trials.end(), [&](const Trial& t) { return t.trial == candidate.trial; });
        Trial trial;
        if (found != trials.end()) {
          trial = *found;
        } else {
          trial.outcome = Outcome::kRuntimeError;
          trial.message = "the worker did not report it";
        }
        trial.trial = candidate.trial;
        trial.plan = candidate.plan;
        complete.push_back(std::move(trial));
      }
      trials = std::move(complete);
    }
  }
  const auto outcome = impl_->store->report(batch_id, lease.lease_id, lease.attempt, trials);
  impl_->note_write(outcome.status());
  if (outcome.ok() && *outcome == ReportOutcome::kAccepted) {
    // Counted as computing from here on, so that no lease slips in before the engine has looked at it.
    impl_->post([impl = impl_.get(), search_id, batch_id, stored = std::move(trials)] {
      impl->on_trials(search_id, batch_id, stored);
    });
    const std::lock_guard lock(impl_->mutex);
    impl_->outstanding.erase(batch_id);
  }
  return outcome;
}

absl::Status Engine::put_blob(const std::string& digest, const std::string& bytes) {
  const absl::Status status = impl_->store->put_blob(digest, bytes);
  impl_->note_write(status);
  return status;
}

absl::Status Engine::release(const LeaseRef& lease) {
  std::string id;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const auto& [batch_id, item] : impl_->outstanding) {
      if (item.lease_id == lease.lease_id && item.attempt == lease.attempt) id = batch_id;
    }
  }
  if (!id.empty()) impl_->requeue(id, lease, false);
  return absl::OkStatus();
}

std::vector<WorkerView> Engine::workers() {
  const std::lock_guard lock(impl_->mutex);
  std::vector<WorkerView> out;
  for (const auto& [name, worker] : impl_->workers) {
    WorkerView view{name, worker.epoch, worker.devices, impl_->alive(worker), worker.seen_ms, 0};
    for (const auto& [id, item] : impl_->outstanding) {
      view.leases += item.state == Outstanding::State::kLeased && item.worker == process_of(name, worker.epoch);
    }
    out.push_back(std::move(view));
  }
  return out;
}

void Engine::Impl::expire() {
  std::vector<std::pair<std::string, LeaseRef>> over;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [id, item] : outstanding) {
      if (item.state == Outstanding::State::kLeased && item.expires < Clock::now())
        over.push_back({id, {item.lease_id, item.attempt}});
    }
  }
  for (const auto& [id, lease] : over) requeue(id, lease, true);
}

// Ready again for another attempt; after kMaxFailures silent ends the batch itself is the suspect.
void Engine::Impl::requeue(const std::string& batch_id, const LeaseRef& lease, bool failed) {
  const auto failures = store->release_lease(lease.lease_id, lease.attempt, failed);
  note_write(failures.status());
  if (!failures.ok()) return;
  std::shared_ptr<Batch> batch;
  int64_t search_id = 0;
  {
    const std::lock_guard lock(mutex);
    const auto item = outstanding.find(batch_id);
    if (item == outstanding.end() || item->second.lease_id != lease.lease_id) return;
    item->second.state = Outstanding::State::kReady;
    item->second.lease_id.clear();
    item->second.worker.clear();
    if (*failures < kMaxFailures) {
      work_changed.notify_all();
      return;
    }
    batch = item->second.batch;
    search_id = item->second.search_id;
    outstanding.erase(item);
  }
  std::vector<Trial> trials;
  for (const Candidate& candidate : batch->candidates) {
    Trial trial;
    trial.trial = candidate.trial;
    trial.plan = candidate.plan;
    trial.outcome = Outcome::kRuntimeError;
    trial.message = cat("given up: ", kMaxFailures, " workers were lost over this batch");
    trials.push_back(std::move(trial));
  }
  const absl::Status abandoned = store->abandon_batch(batch_id, trials);
  note_write(abandoned);
  if (abandoned.ok()) {
    post([this, search_id, batch_id, trials] { on_trials(search_id, batch_id, trials); });
  }
}

}  // namespace wl

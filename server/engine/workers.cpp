#include "server/engine/workers.h"

#include <algorithm>

#include "compiler/base/libraries.h"
#include "compiler/target/target.h"
#include "server/engine/devices.h"

namespace wl {
namespace {

constexpr auto kReturns = std::chrono::seconds(1);
// Maximum number of open Attend calls of one worker process. Several may be open, because the coordinator notices a
// broken connection late.
constexpr int kMostAttending = 8;
constexpr auto kForgotten = std::chrono::hours(1);
// A worker that was silent for this long may be gone: while it measures, it renews its lease after every third of the
// lease's term.
constexpr auto kAway = std::chrono::seconds(10);

// Returns the package that contains the library of matrix products (TuneOptions::libraries) that a job asks for.
std::string package_of(const TuneOptions& asked) {
  const Library* const library = library_named(asked.libraries);
  return library == nullptr ? asked.libraries : std::string(library->package);
}

// Checks that the library of matrix products that a job asks for is one for the job's target.
absl::Status library_fits(const TuneOptions& asked) {
  const Library* const library = library_named(asked.libraries);
  const std::string family = asked.target.substr(0, asked.target.find(':'));
  if (library == nullptr || library->family == family) return absl::OkStatus();
  const Library* const other = library_for(family);
  return invalid("libraries ", asked.libraries, ": it is for targets of ", library->family, ", and the target is ",
                 asked.target, other == nullptr ? "" : cat("; for that there is ", other->name));
}

absl::Status not_under(const std::string& name, uint64_t epoch) {
  return absl::FailedPreconditionError(cat("worker ", name, ": is not registered under epoch ", epoch));
}

}  // namespace

bool Workers::is_here(const State& worker, Clock::duration silence) {
  if (has_left(worker)) return false;
  return worker.waiting > 0 || Clock::now() - worker.heard < silence;
}

// Whether the worker's last call of Attend ended kReturns ago or earlier; a worker that is alive reconnects sooner.
bool Workers::has_left(const State& worker) {
  return worker.left && worker.waiting == 0 && Clock::now() - *worker.left >= kReturns;
}

bool Workers::alive(const State& worker) const {
  return is_here(worker, 2 * term_);
}

Workers::State* Workers::registered(const std::string& name, uint64_t epoch) {
  const auto found = workers_.find(name);
  return found == workers_.end() || found->second.epoch != epoch ? nullptr : &found->second;
}

absl::StatusOr<uint64_t> Workers::add(const std::string& name, uint64_t epoch, const std::vector<Device>& devices,
                                      const std::string& team, const std::string& machine,
                                      const std::vector<MeasuredRates>& rates) {
  const int64_t now_ms = unix_ms_now();
  WL_ASSIGN_OR_RETURN(const uint64_t given, store_->put_worker(name, epoch, devices, machine, now_ms));
  const std::lock_guard lock(mutex_);
  State& worker = workers_[name];
  if (worker.epoch > given) return given;  // a newer process has registered under this name meanwhile
  if (worker.epoch != given)
    worker.waiting = worker.attending = 0;  // open calls of the older process do not count for the new one
  worker.epoch = given;
  worker.serves = {devices, team, machine, rates};
  note(&worker);
  return given;
}

std::optional<Workers::Served> Workers::heard(const std::string& name, uint64_t epoch) {
  Served served;
  {
    const std::lock_guard lock(mutex_);
    State* worker = registered(name, epoch);
    if (worker == nullptr) return std::nullopt;
    note(worker);
    served = worker->serves;
  }
  served.machine = placed(name, std::move(served.machine));
  return served;
}

void Workers::note(State* worker) {
  worker->heard = Clock::now();
  worker->heard_ms = unix_ms_now();
  worker->left.reset();
  worker->lost = false;
}

// Returns the worker's machine: the one that the callers file names, else the one that the worker reports. The prefix
// "row" tells the two apart, since workers report digests.
std::string Workers::placed(const std::string& name, std::string said) const {
  const std::string row = row_(principal_of(name));
  return row.empty() ? said : cat("row ", row);
}

std::string Workers::machine_of(const std::string& name) const {
  std::optional<std::string> said;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = workers_.find(name); known != workers_.end()) said = known->second.serves.machine;
  }
  // The store knows the machine of a worker that has not registered since the coordinator started.
  if (!said) said = store_->worker_machine(name).value_or("");
  return placed(name, *std::move(said));
}

bool Workers::may_be_one(const std::string& a, const std::string& b) const {
  if (!is_answered_for(a) || !is_answered_for(b) || principal_of(a) == principal_of(b)) return true;
  const std::string machine = machine_of(a), other = machine_of(b);
  return machine.empty() || other.empty() || machine == other;
}

absl::Status Workers::may_attend(const std::string& name, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  return registered(name, epoch) != nullptr ? absl::OkStatus() : not_under(name, epoch);
}

absl::Status Workers::attend(const std::string& name, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  State* const worker = registered(name, epoch);
  if (worker == nullptr) return not_under(name, epoch);
  if (worker->attending >= kMostAttending)
    return absl::ResourceExhaustedError(cat("worker ", name, ": has ", kMostAttending, " open calls of Attend"));
  ++worker->attending;
  note(worker);
  return absl::OkStatus();
}

void Workers::left(const std::string& name, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  State* const worker = registered(name, epoch);
  if (worker != nullptr && worker->attending > 0 && --worker->attending == 0) worker->left = Clock::now();
}

std::vector<std::pair<std::string, uint64_t>> Workers::take_lost() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, uint64_t>> lost;
  for (auto& [name, worker] : workers_) {
    if (worker.lost || !has_left(worker)) continue;
    worker.lost = true;
    lost.emplace_back(name, worker.epoch);
  }
  return lost;
}

void Workers::renewed(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = workers_.find(name);
  if (known != workers_.end()) note(&known->second);
}

Workers::Waiting::Waiting(Workers* workers, std::string name, uint64_t epoch)
    : workers_(workers), name_(std::move(name)), epoch_(epoch) {
  const std::lock_guard lock(workers_->mutex_);
  if (State* worker = workers_->registered(name_, epoch_)) ++worker->waiting;
}

Workers::Waiting::~Waiting() {
  const std::lock_guard lock(workers_->mutex_);
  if (State* worker = workers_->registered(name_, epoch_); worker != nullptr && worker->waiting > 0) --worker->waiting;
}

int Workers::serving(const Device& device, const std::string& team) const {
  return static_cast<int>(names_serving(device, team).size());
}

std::vector<std::string> Workers::names_serving(const Device& device, const std::string& team) const {
  return names(device, team, [this](const State& worker) { return alive(worker); });
}

std::vector<std::string> Workers::names_here(const Device& device, const std::string& team) const {
  return names(device, team, [this](const State& worker) { return is_here(worker, away()); });
}

std::vector<std::string> Workers::names_waiting(const Device& device, const std::string& team) const {
  return names(device, team, [](const State& worker) { return worker.waiting > 0; });
}

Clock::duration Workers::away() const {
  return std::min<Clock::duration>(2 * term_, kAway);
}

std::vector<std::string> Workers::names(const Device& device, const std::string& team,
                                        const std::function<bool(const State&)>& which) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, worker] : workers_) {
    if (which(worker) && serves_team(worker.serves.team, team) && any_serves(worker.serves.devices, device))
      names.push_back(name);
  }
  return names;
}

void Workers::forget_dead() {
  const std::lock_guard lock(mutex_);
  std::erase_if(workers_, [&](const auto& entry) {
    return entry.second.waiting == 0 && entry.second.attending == 0 && Clock::now() - entry.second.heard > kForgotten;
  });
}

absl::StatusOr<Device> Workers::device_for(const TuneOptions& asked, const std::string& team) const {
  WL_RETURN_IF_ERROR(library_fits(asked));
  if (asked.device) {
    const auto device = device_as(*asked.device, asked.target);
    if (const auto allowed = device ? device_with(*device, asked.libraries) : std::nullopt) return *allowed;
    if (device)
      return invalid("libraries ", asked.libraries, ": the given device has it not; install ", package_of(asked),
                     " there");
    WL_RETURN_IF_ERROR(check_target(asked.target));
    return invalid("target ", asked.target, ": the given device is a ", asked.device->target);
  }
  std::vector<Device> known;
  {
    const std::lock_guard lock(mutex_);
    std::vector<const State*> sorted;
    for (const auto& [name, worker] : workers_) {
      if (alive(worker) && serves_team(worker.serves.team, team)) sorted.push_back(&worker);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->heard_ms > b->heard_ms; });
    for (const State* worker : sorted)
      known.insert(known.end(), worker->serves.devices.begin(), worker->serves.devices.end());
  }
  WL_ASSIGN_OR_RETURN(std::vector<Device> stored, store_->devices());
  known.insert(known.end(), stored.begin(), stored.end());
  bool lacks_library = false;
  for (const Device& device : known) {
    const auto found = device_as(device, asked.target);
    if (!found) continue;
    if (const auto allowed = device_with(*found, asked.libraries)) return *allowed;
    lacks_library = true;
  }
  if (lacks_library)
    return absl::FailedPreconditionError(cat("no worker for target ", asked.target, " has the library ",
                                             asked.libraries, "; install ", package_of(asked),
                                             " on one and start its worker again, or ask with --libraries none"));
  WL_RETURN_IF_ERROR(check_target(asked.target));
  return absl::NotFoundError(cat("no worker for target ", asked.target, " has registered yet; start one"));
}

MeasuredRates Workers::rates_of(const Device& device, const std::string& team) const {
  const std::lock_guard lock(mutex_);
  MeasuredRates found;
  int64_t heard_ms = -1;
  for (const auto& [name, worker] : workers_) {
    if (!alive(worker) || !serves_team(worker.serves.team, team) || worker.heard_ms <= heard_ms) continue;
    const std::vector<MeasuredRates>& rates = worker.serves.rates;
    for (size_t i = 0; i < std::min(rates.size(), worker.serves.devices.size()); ++i) {
      if (rates[i].gflops <= 0 || !any_serves({worker.serves.devices[i]}, device)) continue;
      found = rates[i];
      heard_ms = worker.heard_ms;
    }
  }
  return found;
}

std::vector<WorkerView> Workers::views() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerView> out;
  for (const auto& [name, worker] : workers_)
    out.push_back({name, worker.serves.team, worker.epoch, worker.serves.devices, alive(worker), worker.heard_ms, {}});
  return out;
}

}  // namespace wl

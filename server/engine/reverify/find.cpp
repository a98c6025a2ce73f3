// Finds the winners to verify again: records of the same device with other compilers or another driver.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/base/names.h"
#include "server/engine/devices.h"
#include "server/engine/impl.h"
#include "server/jobs/job_plan.h"
#include "spdlog/spdlog.h"

namespace wl {
namespace {

constexpr size_t kMostOfJob = 256;  // maximum number of winners that a job verifies; later jobs verify the others
constexpr int kPage = 256;          // number of records that are read at a time
// The least time between two searches for winners on behalf of one class of workers, which may register again and
// again.
constexpr auto kLookEvery = std::chrono::minutes(10);

// The winners to verify: each entry, of one target and team, becomes a job that has these rows.
using Found = std::map<std::pair<std::string, std::string>, std::vector<ReverifiedRow>>;

bool same_machine(const Device& worker, const Device& other) {
  const auto as = device_as(worker, other.target);
  return as && as->fingerprint() == other.fingerprint();
}

// Whether a worker with this device and other compilers was ever registered.
bool others_were_here(const Device& device, const std::vector<Device>& known) {
  return std::any_of(known.begin(), known.end(), [&](const Device& other) {
    return other.compiler_versions != device.compiler_versions &&
           (same_machine(device, other) || same_machine(other, device));
  });
}

// Whether a target is the one that was asked for by its name or its family ("": any target).
bool is_of(const std::string& target, const std::string& asked) {
  return asked.empty() || target == asked || target.substr(0, target.find(':')) == asked;
}

struct Looking {
  const Device& device;  // device of the worker that could verify the winners
  const std::string &team, &target;
  std::set<std::string> known;  // digests of records that some job verifies or has verified
  // The pairs of a team and a key whose newest record was seen: older records of such a pair are skipped.
  std::set<std::pair<std::string, std::string>> seen;
};

absl::Status look_at(Store& store, const RecordRow& row, Looking& looking, Found& found) {
  const KernelRecord& record = row.record;
  const std::string environment = environment_of(looking.device);
  if (!record.device.libraries.empty()) return absl::OkStatus();
  if (!serves_team(looking.team, row.team) || !same_machine(looking.device, record.device)) return absl::OkStatus();
  if (!is_of(record.device.target, looking.target)) return absl::OkStatus();
  if (!looking.seen.emplace(row.team, record.key).second || record.environment == environment) return absl::OkStatus();
  std::vector<ReverifiedRow>& rows = found[{record.device.target, row.team}];
  if (rows.size() >= kMostOfJob || looking.known.contains(record.digest)) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const auto there, store.record_by_key(record.key, environment, {.team = row.team}));
  if (there) return absl::OkStatus();
  rows.push_back({.digest = record.digest,
                  .key = record.key,
                  .environment_before = record.environment,
                  .environment = environment,
                  .plan_before = record.plan,
                  .plan = {},
                  .before_ns = undisturbed_ns(record.samples_ns)});
  return absl::OkStatus();
}

JobRow job_for(const Device& device, const std::string& team, const std::vector<ReverifiedRow>& rows) {
  std::set<std::string> before;
  for (const ReverifiedRow& row : rows) before.insert(row.environment_before);
  TuneOptions options;
  options.target = device.target;
  options.trials = 1;
  options.device = device;
  return own_job("reverify", team,
                 cat("reverify: ", rows.size(), rows.size() == 1 ? " kernel of " : " kernels of ",
                     absl::StrJoin(before, " and "), " with ", environment_of(device)),
                 std::move(options));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Engine::Impl::queue_winners(const Device& of_worker, const std::string& team,
                                                                     const std::string& target, bool again) {
  // The device is taken without its libraries: their versions are part of keys, so kernels of another library version
  // are searched anew instead of verified.
  const Device device = *device_with(of_worker, std::string(kNoLibraries));
  Looking looking{.device = device, .team = team, .target = target, .known = {}, .seen = {}};
  WL_ASSIGN_OR_RETURN(looking.known, store->verified_in(environment_of(device), again));
  Found found;
  std::optional<RecordCursor> after;
  for (bool more = true; more;) {
    WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> page, store->list_records(after, kPage, {.every = true}));
    for (const RecordRow& row : page) WL_RETURN_IF_ERROR(look_at(*store, row, looking, found));
    more = page.size() == kPage;
    if (more) after = RecordCursor{page.back().created_ms, page.back().record.digest};
  }
  std::vector<std::string> names;
  for (const auto& [of, rows] : found) {
    const std::optional<Device> as = device_as(device, of.first);
    if (rows.empty() || !as) continue;
    WL_ASSIGN_OR_RETURN(const std::optional<JobRow> made,
                        store->create_reverification(job_for(*as, of.second, rows), rows, again));
    if (!made) continue;
    spdlog::info("{}: {}", job_name(made->id), made->label);
    names.push_back(job_name(made->id));
    views.begin(made->id, job_of(*made));
    loop.post([this, row = *made]() mutable { jobs.adopt(std::move(row), std::nullopt); });
  }
  return names;
}

void Engine::Impl::look_for_winners(const Device& device, const std::string& team) {
  if (!options.reverify) return;
  const auto [last, is_new] =
      looked.try_emplace(cat(device.fingerprint(), "\n", environment_of(device), "\n", team), Clock::now());
  if (!is_new && Clock::now() - last->second < kLookEvery) return;
  last->second = Clock::now();
  loop.compute([this, device, team] {
    const auto known = store->devices();
    if (known.ok() && !others_were_here(device, *known)) return;
    const auto made = queue_winners(device, team, "", /*again=*/false);
    if (!made.ok()) spdlog::warn("winners are not verified again: {}", std::string(made.status().message()));
  });
}

void Engine::Impl::go_on_with_winners(const Device& device, const std::string& team) {
  loop.compute([this, device, team] {
    const auto made = queue_winners(device, team, device.target, /*again=*/false);
    if (!made.ok()) spdlog::warn("winners are not verified again: {}", std::string(made.status().message()));
  });
}

absl::StatusOr<std::vector<std::string>> Engine::reverify(const std::string& target, bool again) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const WorkerView& worker : impl_->workers.views()) {
    if (!worker.alive) continue;
    for (const Device& device : worker.devices) {
      if (!target.empty() && !device_as(device, target)) continue;
      if (!seen.insert(cat(device.fingerprint(), "\n", environment_of(device), "\n", worker.team)).second) continue;
      WL_ASSIGN_OR_RETURN(const std::vector<std::string> made,
                          impl_->queue_winners(device, worker.team, target, again));
      names.insert(names.end(), made.begin(), made.end());
    }
  }
  return names;
}

}  // namespace wl

// Searches kernels that programs run, while nobody waits for the workers (docs/design/service.md#background-searches).
#include <ctime>
#include <random>

#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "compiler/model/roofline.h"
#include "proto/limits.h"
#include "server/engine/devices.h"
#include "server/engine/impl.h"
#include "server/jobs/demand.h"
#include "server/jobs/reverify.h"

namespace wl {
namespace {

constexpr int kMostLooked = 1024;  // number of kernels, those of most time, among which the next is chosen
constexpr int64_t kDays = 7;       // number of days whose uses count
constexpr auto kLookEvery = std::chrono::minutes(1);  // time between two looks that found nothing to search

// Whether the hour of a local time is one of the given hours; all are if both are equal.
bool is_within(const EngineSettings::Background& hours, std::time_t now) {
  if (hours.from_hour == hours.to_hour) return true;
  std::tm local{};
  localtime_r(&now, &local);
  const bool over_night = hours.to_hour < hours.from_hour;
  const bool after = local.tm_hour >= hours.from_hour, before = local.tm_hour < hours.to_hour;
  return over_night ? after || before : after && before;
}

// Returns options with which a job for the graph of a record searches that record's key further.
TuneOptions options_for(const KernelRecord& record, bool cold, int64_t trials) {
  TuneOptions options;
  options.target = record.device.target;
  options.device = record.device;
  options.cover = "one-kernel";
  options.kernels_alone = true;
  options.background = true;
  options.cold = cold;
  options.trials = trials;
  return options;
}

JobRow job_for(const RecordRow& row, TuneOptions options) {
  std::random_device random;
  JobRow job;
  job.own = true;
  job.team = row.team;
  job.request_id = absl::StrFormat("background-%08x%08x%08x%08x", random(), random(), random(), random());
  job.label = fitted(cat("background: ", describe_group(row.record.graph)), TextKind::kName, kMostName);
  job.graph = row.record.graph;
  job.device = options.device;
  job.options = std::move(options);
  job.state = JobState::kRunning;
  job.created_ms = job.started_ms = unix_ms_now();
  return job;
}

double bound_of(const KernelRecord& record) {
  const auto graph = parse(record.graph);
  const auto machine = machine_of(record.device);
  return graph.ok() && machine.ok() ? roofline(*graph, *machine).ns() : 0;
}

}  // namespace

// Returns the kernels that may be searched now, with their records, in the same order.
absl::StatusOr<std::vector<Demand>> Engine::Impl::demands(const std::vector<Device>& in_use,
                                                          std::vector<RecordRow>* records) {
  const int64_t today = options.today();
  WL_ASSIGN_OR_RETURN(const auto used, store->most_used(today - kDays + 1, kMostLooked));
  std::vector<Demand> found;
  for (const KernelUseOfTeam& each : used) {
    if (background.unfit.contains(each.use.key)) continue;
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> row, store->record_by_key(each.use.key, "", {.team = each.team}));
    if (!row || !row->record.device.libraries.empty()) continue;
    const KernelRecord& record = row->record;
    const bool taken = std::any_of(in_use.begin(), in_use.end(), [&](const Device& other) {
      return serves(other, record.device) || serves(record.device, other);
    });
    if (taken || workers.serving(record.device, row->team) == 0) continue;
    const double best_ns = undisturbed_ns(record.samples_ns);
    const double ns =
        each.use.ns > 0 ? static_cast<double>(each.use.ns) : static_cast<double>(each.use.calls) * best_ns;
    const auto asked = background.asked.find(each.use.key);
    found.push_back({.team = each.team,
                     .key = each.use.key,
                     .ns_per_day = ns / static_cast<double>(today - each.first_day + 1),
                     .best_ns = best_ns,
                     .default_ns = undisturbed_ns(record.default_samples_ns),
                     .bound_ns = bound_of(record),
                     .trials = std::max(record.trials_asked, asked == background.asked.end() ? 0 : asked->second)});
    records->push_back(*std::move(row));
  }
  return found;
}

// Makes a job that searches a record's key further. nullopt: this version plans its graph otherwise, so that a job
// would search another key.
absl::StatusOr<std::optional<int64_t>> Engine::Impl::search_further(const RecordRow& row, int64_t trials) {
  const absl::StatusOr<Winner> winner = winner_of(row.record, row.record.device);
  if (!winner.ok()) return std::nullopt;
  const JobRow job = job_for(row, options_for(row.record, winner->cold, trials));
  Work work(waiting_for(job.options, std::nullopt, loop, {}));
  absl::StatusOr<JobPlan> plan = timed_plan(job, job.options, *compiler, {}, &work);
  if (absl::IsCancelled(plan.status())) return plan.status();
  if (!plan.ok() || plan->levels[0].launches.size() != 1 ||
      plan->groups[plan->levels[0].launches[0].group].key != row.record.key)
    return std::nullopt;
  WL_ASSIGN_OR_RETURN(JobRow made, store->create_job(job));
  log_line(spdlog::level::info, "job created", fields_of(made));
  views.begin(made.id, job_of(made));
  loop.post([this, made, plan = *std::move(plan)]() mutable { jobs.adopt(std::move(made), std::move(plan)); });
  return made.id;
}

// Chooses the kernel to search next and makes its job. nullopt: none is worth it.
absl::StatusOr<std::optional<int64_t>> Engine::Impl::search_used(const std::vector<Device>& in_use) {
  const int64_t today = options.today();
  if (std::exchange(background.day, today) != today) background.given.clear();
  for (;;) {
    std::vector<RecordRow> records;
    WL_ASSIGN_OR_RETURN(const std::vector<Demand> kernels, demands(in_use, &records));
    std::map<std::string, double> weights;
    for (const Demand& kernel : kernels) {
      const TeamRules rules = options.rules(kernel.team);
      const bool over =
          rules.most_background > 0 && background.given[kernel.team] >= static_cast<double>(rules.most_background);
      weights[kernel.team] = over ? 0 : static_cast<double>(rules.weight);
    }
    const std::optional<size_t> next = worth_most(kernels, background.given, weights);
    if (!next) return std::nullopt;
    const Demand& kernel = kernels[*next];
    const int64_t trials = next_trials(kernel);
    WL_ASSIGN_OR_RETURN(const std::optional<int64_t> job, search_further(records[*next], trials));
    if (!job) {
      background.unfit.insert(kernel.key);
      continue;
    }
    background.given[kernel.team] += static_cast<double>(trials - kernel.trials);
    background.asked[kernel.key] = trials;
    return job;
  }
}

void Engine::Impl::look_for_demand() {
  if (!options.background.on || background.looking || leases.draining()) return;
  // After a job another may follow at once; if there was nothing to search, some time passes first.
  const auto view = background.job ? views.find(*background.job) : nullptr;
  if (view != nullptr && !is_done(view->state)) return;
  const bool again = std::exchange(background.job, std::nullopt).has_value();
  if (!again && Clock::now() < background.next) return;
  if (!is_within(options.background, std::time(nullptr))) return;
  background.looking = true;
  background.next = Clock::now() + kLookEvery;
  loop.compute_long(
      [this, in_use = jobs.devices_in_use()] {
        const auto made = search_used(in_use);
        if (!made.ok() && !absl::IsCancelled(made.status()))
          spdlog::warn("kernels that programs run are not searched: {}", std::string(made.status().message()));
        loop.post([this, job = made.ok() ? *made : std::nullopt] {
          background.job = job;
          background.looking = false;
        });
      },
      "background");
}

absl::StatusOr<int64_t> Engine::count_uses(const std::string& team, const std::vector<KernelUse>& uses) {
  return impl_->store->add_uses(team, uses, impl_->options.today());
}

}  // namespace wl

// Searches kernels that programs run, while nobody waits for the workers (docs/design/service.md#background-searches).
#include <ctime>

#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "compiler/model/roofline.h"
#include "server/engine/devices.h"
#include "server/engine/impl.h"
#include "server/jobs/demand.h"
#include "server/jobs/reverify.h"

namespace wl {
namespace {

constexpr int kMostLooked = 256;  // number of kernels of each team, those of most time, among which one is chosen
constexpr int64_t kMostTrials = 1'000'000;  // more trials of a record count as this many
constexpr int kMostMissed = 64;  // number of graphs without kernels, those asked for most, that are considered
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

}  // namespace

double bound_of(const KernelRecord& record) {
  const auto graph = parse(record.graph);
  const auto machine = machine_of(record.device);
  return graph.ok() && machine.ok() ? roofline(*graph, *machine).ns() : 0;
}

std::string Engine::Impl::background_pause() {
  if (!options.background.on) return "this coordinator searches nothing by itself (--background-hours)";
  if (leases.draining()) return "the coordinator is drained";
  if (!is_within(options.background, std::time(nullptr))) return "now is outside of the hours of --background-hours";
  return "";
}

// Returns the kernels that may be searched now, with their records, in the same order.
absl::StatusOr<std::vector<Demand>> Engine::Impl::demands(const std::vector<Device>& in_use,
                                                          std::vector<RecordRow>* records) {
  const int64_t today = options.today();
  WL_ASSIGN_OR_RETURN(const auto used, store->most_used(today - kUseDays + 1, today, kMostLooked));
  std::vector<Demand> found;
  for (const KernelUseOfTeam& each : used) {
    if (loop.leaving()) return absl::CancelledError("the coordinator stops");
    if (background.so_far.unfit.contains(each.use.key)) continue;
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> row, store->record_by_key(each.use.key, "", {.team = each.team}));
    if (!row || !row->record.device.libraries.empty()) continue;
    const KernelRecord& record = row->record;
    if (is_in_use(in_use, record.device) || workers.serving(record.device, row->team) == 0) continue;
    const double best_ns = undisturbed_ns(record.samples_ns);
    found.push_back({.team = each.team,
                     .key = each.use.key,
                     .ns_per_day = per_day(ns_of(each.use, best_ns), each.first_day, today),
                     .best_ns = best_ns,
                     .default_ns = undisturbed_ns(record.default_samples_ns),
                     .bound_ns = bound_of(record),
                     .trials = background.so_far.trials_of(each.use.key, record.trials_asked)});
    records->push_back(*std::move(row));
  }
  return found;
}

// Makes a job that searches a record's key further. nullopt: this version plans its graph otherwise, so that a job
// would search another key.
absl::StatusOr<std::optional<int64_t>> Engine::Impl::search_further(const RecordRow& row, int64_t trials) {
  const absl::StatusOr<Winner> winner = winner_of(row.record, row.record.device);
  if (!winner.ok()) return std::nullopt;
  const JobRow job = own_job("background", row.team, cat("background: ", describe_group(row.record.graph)),
                             options_for(row.record, winner->cold, trials), row.record.graph);
  Work work(waiting_for(job.options, std::nullopt, loop, {}));
  absl::StatusOr<JobPlan> plan = timed_plan(job, job.options, *compiler, {}, &work);
  if (absl::IsCancelled(plan.status())) return plan.status();
  if (!plan.ok() || plan->levels[0].launches.size() != 1 ||
      plan->groups[plan->levels[0].launches[0].group].key != row.record.key)
    return std::nullopt;
  return begin_own(job, *std::move(plan));
}

absl::StatusOr<JobRow> Engine::Impl::put_own(const JobRow& job) {
  WL_ASSIGN_OR_RETURN(JobRow made, store->create_job(job));
  log_line(spdlog::level::info, "job created", fields_of(made));
  views.begin(made.id, job_of(made));
  return made;
}

absl::StatusOr<int64_t> Engine::Impl::begin_own(const JobRow& job, JobPlan plan) {
  WL_ASSIGN_OR_RETURN(JobRow made, put_own(job));
  loop.post([this, made, plan = std::move(plan)]() mutable { jobs.adopt(std::move(made), std::move(plan)); });
  return made.id;
}

int64_t Engine::Impl::Given::trials_of(const std::string& key, int64_t of_record) const {
  const auto last = asked.find(key);
  return std::clamp<int64_t>(std::max(of_record, last == asked.end() ? 0 : last->second), 0, kMostTrials);
}

bool Engine::Impl::Given::is_over(const std::string& team, const TeamRules& rules) const {
  const auto trials = given.find(team);
  return rules.most_background > 0 && trials != given.end() &&
         trials->second >= static_cast<double>(rules.most_background);
}

// Makes a job for a graph whose kernels clients asked for in vain: default kernels, verified, of which programs then
// say what they run. nullopt: there is no such graph, or each had such a job.
absl::StatusOr<std::optional<int64_t>> Engine::Impl::make_missed(const std::vector<Device>& in_use) {
  const int64_t week_ms = kUseDays * 86'400'000;
  WL_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, store->most_missed(unix_ms_now() - week_ms, kMostMissed));
  for (const int64_t id : ids) {
    WL_ASSIGN_OR_RETURN(std::optional<JobRow> missed, store->job(id));
    if (!missed || !missed->device || is_in_use(in_use, *missed->device)) continue;
    if (workers.serving(*missed->device, missed->team) == 0 ||
        background.so_far.is_over(missed->team, options.rules(missed->team)))
      continue;
    if (!background.made.insert(missed->body_hash).second) continue;
    TuneOptions asked = missed->options;
    asked.device = missed->device;
    asked.require_cached = false;
    asked.trials = 1;
    asked.kernels_alone = true;
    asked.background = true;
    JobRow job =
        own_job("background", missed->team, cat("background: ", missed->label), std::move(asked), missed->graph);
    Work work(waiting_for(job.options, std::nullopt, loop, {}));
    absl::StatusOr<JobPlan> plan = timed_plan(job, job.options, *compiler, {}, &work);
    if (absl::IsCancelled(plan.status())) return plan.status();
    if (!plan.ok()) continue;
    background.so_far.given[missed->team] += static_cast<double>(plan->groups.size());
    return begin_own(job, *std::move(plan));
  }
  return std::nullopt;
}

// Chooses the kernel to search next and makes its job. nullopt: none is worth it.
absl::StatusOr<std::optional<int64_t>> Engine::Impl::search_used(const std::vector<Device>& in_use) {
  const int64_t today = options.today();
  if (std::exchange(background.so_far.day, today) != today) background.so_far.given.clear();
  // What programs run already must not be slower than it was, so this comes before all searches.
  WL_ASSIGN_OR_RETURN(const std::optional<int64_t> tried, try_in_place(in_use));
  if (tried) return tried;
  // Graphs without kernels take turns with searches, since it is not known how much time they take.
  if (!background.made_last) {
    WL_ASSIGN_OR_RETURN(const std::optional<int64_t> job, make_missed(in_use));
    background.made_last = job.has_value();
    if (job) return job;
  }
  background.made_last = false;
  std::vector<RecordRow> records;
  WL_ASSIGN_OR_RETURN(std::vector<Demand> kernels, demands(in_use, &records));
  while (!loop.leaving()) {
    std::map<std::string, double> weights;
    for (const Demand& kernel : kernels)
      weights[kernel.team] = background.so_far.is_over(kernel.team, options.rules(kernel.team))
                                 ? 0
                                 : static_cast<double>(options.rules(kernel.team).weight);
    const std::optional<size_t> next = worth_most(kernels, background.so_far.given, weights);
    if (!next) break;
    const Demand& kernel = kernels[*next];
    const int64_t trials = next_trials(kernel);
    WL_ASSIGN_OR_RETURN(const std::optional<int64_t> job, search_further(records[*next], trials));
    if (job) {
      background.so_far.given[kernel.team] += static_cast<double>(trials - kernel.trials);
      background.so_far.asked[kernel.key] = trials;
      return job;
    }
    background.so_far.unfit.insert(kernel.key);
    kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(*next));
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(*next));
  }
  return std::nullopt;
}

// Whether the last job has not ended. One whose workers have all gone would not end by itself, since it has no budget:
// it is cancelled after a while.
bool Engine::Impl::is_searching() {
  const auto view = background.job ? views.find(*background.job) : nullptr;
  if (view == nullptr || is_done(view->state)) return false;
  const auto row = jobs.row_of(*background.job);
  const bool served = !row || !row->device || workers.serving(*row->device, row->team) > 0;
  if (served) background.alone_since.reset();
  if (!served && !background.alone_since) background.alone_since = Clock::now();
  if (served || Clock::now() - *background.alone_since < workers.away()) return true;
  background.alone_since.reset();
  if (const absl::Status noted = store->set_job_cancelling(*background.job); !noted.ok()) return true;
  jobs.cancel(*background.job);
  return true;
}

void Engine::Impl::look_for_demand() {
  if (!options.background.on || background.looking || leases.draining()) return;
  // After a job another may follow at once; if there was nothing to search, some time passes first.
  if (is_searching()) return;
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
        auto given = std::make_shared<const Given>(background.so_far);
        {
          const std::lock_guard lock(usage.mutex);
          usage.given = std::move(given);
        }
        loop.post([this, job = made.ok() ? *made : std::nullopt] {
          background.job = job;
          background.looking = false;
        });
      },
      "background");
}

absl::StatusOr<int64_t> Engine::count_uses(const std::string& team, const std::vector<KernelUse>& uses) {
  auto known = impl_->store->add_uses(team, uses, impl_->options.today());
  // The first report to this process need not wait until the next look.
  if (known.ok() && *known > 0 && !impl_->told.exchange(true))
    impl_->loop.post([impl = impl_.get()] { impl->background.next = {}; });
  return known;
}

}  // namespace wl

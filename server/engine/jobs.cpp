// Jobs: taking them up, what they want of which search, when they are done, and how they look from outside.
#include <algorithm>
#include <limits>

#include "compiler/model/roofline.h"
#include "server/engine/state.h"

namespace wl {
namespace {

constexpr int kKnown = 256;  // records that are looked at for similar groups, newest first
constexpr int kNear = 2;     // of their plans are tried first

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

int64_t total(const OutcomeCounts& counts) {
  int64_t sum = 0;
  for (int64_t count : counts) sum += count;
  return sum;
}

GroupProgress group_progress(const ActiveJob& job, const PlannedGroup& group, const Search* search) {
  GroupProgress out;
  out.key = group.key;
  out.name = group.name;
  out.is_default = !group.searched();
  out.count = group.fused_count > 0     ? group.fused_count
              : group.between_count > 0 ? group.between_count
                                        : group.part_count;
  if (const auto wanted = job.wanted.find(group.key); wanted != job.wanted.end()) out.trials_total = wanted->second;
  const auto record = job.records.find(group.key);
  if (record != job.records.end() && (search == nullptr || search->end != Search::End::kOpen)) {
    out.best_ns = median_of(record->second.samples_ns);
    out.default_ns = median_of(record->second.default_samples_ns);
    out.outcomes = record->second.outcomes;
    out.trials_done = total(out.outcomes);
    out.trials_total = std::max(out.trials_done, out.trials_total);
    out.done = true;
    out.cached = !job.searched.contains(group.key);
    return out;
  }
  if (search == nullptr) return out;
  out.done = search->end != Search::End::kOpen;
  out.best_ns = best_ns(search->input.trials);
  out.outcomes = count_outcomes(search->input.trials);
  out.trials_done = total(out.outcomes);
  for (const Trial& trial : search->input.trials) {
    if (trial.outcome != Outcome::kCorrect) continue;
    out.default_ns = median_of(trial.samples_ns);
    break;
  }
  return out;
}

}  // namespace

Records Engine::Impl::known_records(const JobPlan& plan, absl::Status* status) {
  Records records;
  for (const PlannedGroup& group : plan.groups) {
    auto record = store->record_by_key(group.key, environment_of(plan.device));
    if (!record.ok()) {
      *status = record.status();
      return {};
    }
    if (*record) records.emplace(group.key, std::move((*record)->record));
  }
  return records;
}

// Those from before the job, so that a restarted coordinator finds the same.
absl::StatusOr<std::vector<KnownPlan>> Engine::Impl::known_plans(const JobRow& job) {
  WL_ASSIGN_OR_RETURN(const std::vector<RecordRow> rows, store->list_records(job.created_ms, kKnown));
  std::vector<KnownPlan> plans;
  for (const RecordRow& row : rows) {
    const KernelRecord& record = row.record;
    const double ns = median_of(record.samples_ns);
    if (ns <= 0) continue;
    plans.push_back({record.graph, record.plan, median_of(record.default_samples_ns) / ns});
  }
  return plans;
}

void Engine::Impl::adopt(JobRow row, std::optional<JobPlan> plan) {
  const int64_t id = row.id;
  const auto [at, is_new] = jobs.try_emplace(id);
  ActiveJob& job = at->second;
  if (!is_new && job.plan) return;
  if (is_new) job.row = std::move(row);
  if (!job.row.device) {
    auto device = device_for(job.row.options);
    if (!device.ok()) {
      if (absl::IsNotFound(device.status())) return publish(job);
      return finish(job, JobState::kFailed, device.status());
    }
    job.row.device = *std::move(device);
  }
  if (!plan) {
    auto made = make_plan(job.row.graph, job.row.options, *job.row.device, *compiler);
    if (!made.ok()) return finish(job, JobState::kFailed, made.status());
    plan = *std::move(made);
  }
  job.plan = std::move(plan);
  if (job.row.state == JobState::kQueued) {
    job.row.state = JobState::kRunning;
    job.row.started_ms = unix_ms_now();
    const absl::Status status = store->set_job_running(id, *job.row.device, job.row.started_ms);
    if (!status.ok()) return finish(job, JobState::kFailed, status);
  }
  job.begun = Clock::now() - std::chrono::milliseconds(std::max<int64_t>(0, unix_ms_now() - job.row.started_ms));
  if (job.row.options.budget_s > 0) {
    job.deadline = job.begun +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(job.row.options.budget_s));
  }
  if (auto winners = known_plans(job.row); winners.ok()) {
    job.known = *std::move(winners);
  } else {
    return finish(job, JobState::kFailed, winners.status());
  }
  if (absl::Status status = want_all(job); !status.ok()) return finish(job, JobState::kFailed, std::move(status));
  if (job.row.cancelling) stop_searches(job, true);
  advance(id);
}

void Engine::Impl::plan_queued() {
  std::vector<int64_t> queued;
  for (const auto& [id, job] : jobs) {
    if (!job.plan) queued.push_back(id);
  }
  for (int64_t id : queued) adopt(jobs.at(id).row, std::nullopt);
}

absl::Status Engine::Impl::want_all(ActiveJob& job) {
  for (const PlannedGroup& group : job.plan->groups)
    WL_RETURN_IF_ERROR(want(job, group, group.searched() ? job.row.options.trials : 1));
  return absl::OkStatus();
}

absl::Status Engine::Impl::want(ActiveJob& job, const PlannedGroup& group, int64_t trials) {
  const TuneOptions& asked = job.row.options;
  const std::string environment = environment_of(*job.row.device);
  job.wanted[group.key] = std::max(job.wanted[group.key], trials);
  WL_ASSIGN_OR_RETURN(std::optional<RecordRow> record, store->record_by_key(group.key, environment));
  if (record && !asked.retune && satisfies(record->record, trials, asked.budget_s)) {
    job.records.insert_or_assign(group.key, std::move(record->record));
    return absl::OkStatus();
  }
  SearchRow wanted;
  wanted.key = group.key;
  wanted.environment = environment;
  wanted.strategy = asked.strategy;
  wanted.seed = asked.seed;
  WL_ASSIGN_OR_RETURN(SearchRow row, store->open_search(job.row.id, wanted, asked.retune));
  if (record && record->search_id == row.id && satisfies(record->record, trials, asked.budget_s)) {
    // A retune that had this group done before the coordinator restarted.
    job.records.insert_or_assign(group.key, std::move(record->record));
    job.searched.insert(group.key);
    return absl::OkStatus();
  }
  auto known = searches.find(row.id);
  if (known == searches.end()) {
    WL_ASSIGN_OR_RETURN(Search search, open(row, group, *job.row.device, job.plan->machine));
    if (search.compiler) search.input.near = search.compiler->nearest(job.known, kNear);
    search.bound_ns = roofline(group.graph, job.plan->machine).ns();
    known = searches.emplace(row.id, std::move(search)).first;
  }
  Search& search = known->second;
  search.jobs.insert(job.row.id);
  job.searches[group.key] = row.id;
  search.budget_s = std::max(search.budget_s, asked.budget_s);
  if (!record && !asked.retune && search.input.trials.empty()) {
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> other, store->record_by_key(group.key, ""));
    if (other && satisfies(other->record, trials, asked.budget_s)) search.elsewhere = std::move(other->record);
  }
  const bool more = trials > search.input.wanted;
  search.input.wanted = std::max(search.input.wanted, trials);
  if (search.end == Search::End::kRecord && more) search.end = Search::End::kOpen;
  if (search.end == Search::End::kRecord && record) job.records.insert_or_assign(group.key, std::move(record->record));
  if (search.end == Search::End::kOpen) {
    search.stop = false;
    mark(row.id);
  }
  return absl::OkStatus();
}

void Engine::Impl::advance(int64_t job_id) {
  const auto at = jobs.find(job_id);
  if (at == jobs.end() || !at->second.plan) return;
  ActiveJob& job = at->second;
  const auto busy = [&] {
    return std::any_of(job.searches.begin(), job.searches.end(),
                       [&](const auto& item) { return searches.at(item.second).end == Search::End::kOpen; });
  };
  if (busy()) return publish(job);
  const bool hurried = job.row.cancelling || job.stopping;
  if (!hurried && !job.refined && compiler->refines(job.row.options.cover)) return refine(job);
  if (hurried) {
    // A search that was cut short may have nothing yet, where an earlier one did.
    absl::Status status;
    job.records.merge(known_records(*job.plan, &status));
    if (!status.ok()) return finish(job, JobState::kFailed, status);
  }
  auto launches = choose_launches(*job.plan, job.records);
  if (!launches.ok()) {
    return job.row.cancelling ? finish(job, JobState::kCancelled, absl::OkStatus())
                              : finish(job, JobState::kFailed, launches.status());
  }
  if (!hurried) {
    // Parts that beat their fused group deserve a search of their own.
    const std::set<std::string> parts = parts_in_use(*job.plan, *launches);
    for (const PlannedGroup& group : job.plan->groups) {
      if (!parts.contains(group.key) || job.wanted[group.key] >= job.row.options.trials) continue;
      const absl::Status status = want(job, group, job.row.options.trials);
      if (!status.ok()) return finish(job, JobState::kFailed, status);
    }
    if (busy()) return publish(job);
    for (const auto& [whole, part] : replaced_groups(*job.plan, *launches)) {
      const absl::Status status = look_again(job, job.plan->groups[whole], job.plan->groups[part]);
      if (!status.ok()) return finish(job, JobState::kFailed, status);
    }
    if (busy()) return publish(job);
  }
  finish(job, job.row.cancelling ? JobState::kCancelled : JobState::kSucceeded, absl::OkStatus());
}

// A fused group that its parts beat may have been searched with less luck: it tries what won for a part as well. What
// it tried is stored, so a restarted coordinator asks for the same.
absl::Status Engine::Impl::look_again(ActiveJob& job, const PlannedGroup& whole, const PlannedGroup& part) {
  const auto winner = job.records.find(part.key);
  if (!whole.searched() || !job.records.contains(whole.key) || winner == job.records.end()) return absl::OkStatus();
  if (!job.looked.emplace(whole.key, part.key).second) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> known,
                      store->record_by_key(whole.key, environment_of(*job.row.device)));
  const auto opened = compiler->open(whole.graph, job.plan->machine);
  if (!known || !opened.ok()) return absl::OkStatus();
  const KnownPlan better{part.text, winner->second.plan, std::numeric_limits<double>::infinity()};
  const std::vector<std::string> also = (*opened)->nearest({better}, 1);
  WL_ASSIGN_OR_RETURN(const std::vector<PhaseTrial> stored, store->trials(known->search_id));
  std::vector<Trial> trials;
  for (const PhaseTrial& item : stored)
    if (item.phase == 0) trials.push_back(item.trial);
  if (also.empty() || was_tried(trials, also[0]) || !job.looked.emplace(whole.key, also[0]).second)
    return absl::OkStatus();
  const auto open = searches.find(known->search_id);
  const int64_t wanted = std::max(static_cast<int64_t>(trials.size()), known->record.trials_asked) + 1;
  const bool again = open != searches.end() && open->second.end == Search::End::kOpen;
  WL_RETURN_IF_ERROR(want(job, whole, again ? open->second.input.wanted + 1 : wanted));
  Search& search = searches.at(job.searches.at(whole.key));
  search.input.also.push_back(also[0]);
  search.exhausted = false;
  return absl::OkStatus();
}

void Engine::Impl::finish(ActiveJob& job, JobState state, absl::Status error) {
  job.row.state = state;
  job.row.error = std::move(error);
  job.row.finished_ms = unix_ms_now();
  job.row.cached = job.plan && job.searched.empty() && job.searches.empty();
  std::string answer;
  if (job.plan && (state == JobState::kSucceeded || state == JobState::kCancelled)) {
    auto result = assemble(*job.plan, job.records, job.searched, job.transferred);
    if (result.ok()) {
      result->cover_rounds = job.cover_rounds;
      result->cover_certified = job.cover_certified;
      result->total_s = seconds(Clock::now() - job.begun);
      job.row.result = *std::move(result);
      if (state == JobState::kSucceeded) answer = result_key(job.row.graph, *job.row.device, job.row.options);
    } else if (state == JobState::kSucceeded) {
      job.row.state = JobState::kFailed;
      job.row.error = result.status();
    }
  }
  const absl::Status stored = store->finish_job(job.row, answer);
  if (!stored.ok() && job.row.error.ok()) {
    job.row.state = JobState::kFailed;
    job.row.error = stored;
  }
  publish(job);
  // What the store could not take is at least said to who asks while this process lives.
  forget(job.row.id, /*keep_view=*/!stored.ok());
}

void Engine::Impl::note_write(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
      break;
    default:
      return;
  }
  post([this, status] {
    std::vector<int64_t> ids;
    for (const auto& [id, job] : jobs) ids.push_back(id);
    for (int64_t id : ids) finish(jobs.at(id), JobState::kFailed, status);
  });
}

void Engine::Impl::forget(int64_t job_id, bool keep_view) {
  for (auto at = searches.begin(); at != searches.end();) {
    Search& search = at->second;
    search.jobs.erase(job_id);
    if (!search.jobs.empty()) {
      ++at;
      continue;
    }
    if (search.end == Search::End::kOpen) drop(search, true);
    {
      const std::lock_guard lock(mutex);
      rebuilding.erase(at->first);
    }
    at = searches.erase(at);
  }
  jobs.erase(job_id);
  const std::lock_guard lock(mutex);
  if (!keep_view) views.erase(job_id);
}

void Engine::Impl::stop_searches(ActiveJob& job, bool drop_leased) {
  for (const auto& [key, id] : job.searches) {
    Search& search = searches.at(id);
    if (search.end != Search::End::kOpen || search.stop) continue;
    const bool shared = std::any_of(search.jobs.begin(), search.jobs.end(), [&](int64_t other) {
      const auto found = jobs.find(other);
      return found != jobs.end() && !found->second.row.cancelling && !found->second.stopping;
    });
    if (shared) continue;
    search.stop = true;
    search.cancelled = job.row.cancelling;
    // A promotion under way is what is wanted now.
    if (search.outstanding.find("/p0/") != std::string::npos || search.rebuild) drop(search, drop_leased);
    mark(id);
  }
}

void Engine::Impl::publish(const ActiveJob& job) {
  Job out = job_of(job.row);
  out.progress.workers = job.row.device ? workers_for(*job.row.device) : 0;
  if (job.plan) {
    bool finals = true;
    for (const PlannedGroup& group : job.plan->groups) {
      const auto at = job.searches.find(group.key);
      const Search* search = at == job.searches.end() ? nullptr : &searches.at(at->second);
      out.progress.groups.push_back(group_progress(job, group, search));
      out.progress.trials_done += out.progress.groups.back().trials_done;
      out.progress.trials_total +=
          std::max(out.progress.groups.back().trials_total, out.progress.groups.back().trials_done);
      if (search != nullptr && search->end == Search::End::kOpen) {
        finals &= search->outstanding.find("/p0/") == std::string::npos && !search->outstanding.empty();
      }
    }
    out.progress.elapsed_s = seconds(Clock::now() - job.begun);
    const double done = static_cast<double>(out.progress.trials_done);
    const double left = static_cast<double>(out.progress.trials_total) - done;
    if (done > 0) out.progress.left_s = out.progress.elapsed_s / done * left;
    if (job.deadline) {
      const double budget_left = std::max(0.0, seconds(*job.deadline - Clock::now()));
      out.progress.left_s = done > 0 ? std::min(out.progress.left_s, budget_left) : budget_left;
    }
    out.progress.phase = is_done(job.row.state) ? "done" : done == 0 ? "check" : finals ? "final" : "search";
  }
  const std::lock_guard lock(mutex);
  std::shared_ptr<View>& view = views[job.row.id];
  if (!view) view = std::make_shared<View>();
  out.version = ++version;
  view->job = std::move(out);
  views_changed.notify_all();
}

}  // namespace wl

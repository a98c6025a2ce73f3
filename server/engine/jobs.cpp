#include "server/engine/jobs.h"

#include <algorithm>

namespace wl {

absl::StatusOr<Records> known_records(Store& store, const JobPlan& plan) {
  Records records;
  for (const PlannedGroup& group : plan.groups) {
    WL_ASSIGN_OR_RETURN(auto record, store.record_by_key(group.key, environment_of(plan.device)));
    if (record) records.emplace(group.key, std::move(record->record));
  }
  return records;
}

void Jobs::adopt(JobRow row, std::optional<JobPlan> plan) {
  const int64_t id = row.id;
  const auto [at, is_new] = jobs_.try_emplace(id);
  ActiveJob& job = at->second;
  if (!is_new && job.plan) return;
  if (is_new) job.row = std::move(row);
  if (!job.row.device) {
    auto device = workers_->device_for(job.row.options);
    if (!device.ok()) {
      if (absl::IsNotFound(device.status())) return publish(job);
      return finish(job, JobState::kFailed, device.status());
    }
    job.row.device = *std::move(device);
  }
  if (!plan) {
    auto made = make_plan(job.row.graph, job.row.options, *job.row.device, *compiler_);
    if (!made.ok()) return finish(job, JobState::kFailed, made.status());
    plan = *std::move(made);
  }
  job.plan = std::move(plan);
  if (absl::Status status = begin(job); !status.ok()) return finish(job, JobState::kFailed, std::move(status));
  if (job.row.cancelling) stop_searches(job, true);
  advance(id);
}

// Its device and plan are known: it runs from here on.
absl::Status Jobs::begin(ActiveJob& job) {
  if (job.row.state == JobState::kQueued) {
    job.row.state = JobState::kRunning;
    job.row.started_ms = unix_ms_now();
    WL_RETURN_IF_ERROR(store_->set_job_running(job.row.id, *job.row.device, job.row.started_ms));
  }
  job.begun = Clock::now() - std::chrono::milliseconds(std::max<int64_t>(0, unix_ms_now() - job.row.started_ms));
  if (job.row.options.budget_s > 0) job.deadline = job.begun + duration_of(job.row.options.budget_s);
  WL_ASSIGN_OR_RETURN(job.known, known_plans(job.row));
  return want_all(job);
}

void Jobs::plan_queued() {
  std::vector<int64_t> queued;
  for (const auto& [id, job] : jobs_) {
    if (!job.plan) queued.push_back(id);
  }
  for (int64_t id : queued) adopt(jobs_.at(id).row, std::nullopt);
}

void Jobs::cancel(int64_t id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end() || job->second.row.cancelling) return;
  job->second.row.cancelling = true;
  if (!job->second.plan) return finish(job->second, JobState::kCancelled, absl::OkStatus());
  stop_searches(job->second, true);
  advance(id);
}

void Jobs::tick() {
  std::vector<int64_t> ids;
  for (const auto& [id, job] : jobs_) ids.push_back(id);
  for (int64_t id : ids) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end() || !found->second.plan) continue;
    ActiveJob& job = found->second;
    // Promotions need some of the budget: a tenth, but no more than two seconds for every group that still searches.
    const double reserve = std::min(job.row.options.budget_s / 10, 2.0 * static_cast<double>(job.searches.size()));
    if (job.deadline && !job.stopping && Clock::now() > *job.deadline - duration_of(reserve)) {
      job.stopping = true;
      stop_searches(job, false);
    }
    if (job.row.cancelling && workers_->serving(*job.row.device) == 0) {
      for (const auto& [key, search_id] : job.searches) {
        Search& search = searches_->at(search_id);
        if (search.end == Search::End::kOpen && search.jobs.size() == 1) searches_->abandon(search);
      }
      advance(id);
    } else {
      publish(job);
    }
  }
}

void Jobs::on_round(const Search& search) {
  for (int64_t id : search.jobs) publish(jobs_.at(id));
}

void Jobs::on_record(const Search& search, const KernelRecord& record, Origin origin) {
  if (origin != Origin::kKnown && promoted_) promoted_(record.key);
  for (int64_t id : search.jobs) {
    ActiveJob& job = jobs_.at(id);
    job.records.insert_or_assign(search.group.key, record);
    if (origin != Origin::kKnown) job.searched.insert(search.group.key);
    if (origin == Origin::kTransferred) job.transferred.insert(search.group.key);
  }
}

void Jobs::on_end(const Search& search) {
  const std::set<int64_t> waiting = search.jobs;
  for (int64_t id : waiting) advance(id);
}

void Jobs::on_failure(const Search& search, const absl::Status& status) {
  const std::set<int64_t> waiting = search.jobs;
  for (int64_t id : waiting) {
    if (const auto job = jobs_.find(id); job != jobs_.end()) finish(job->second, JobState::kFailed, status);
  }
}

bool Jobs::busy(const ActiveJob& job) const {
  return std::any_of(job.searches.begin(), job.searches.end(),
                     [&](const auto& item) { return searches_->at(item.second).end == Search::End::kOpen; });
}

// Goes on with a job once none of its searches is open: refines the cover, searches more, or ends the job.
void Jobs::advance(int64_t job_id) {
  const auto at = jobs_.find(job_id);
  if (at == jobs_.end() || !at->second.plan) return;
  ActiveJob& job = at->second;
  if (busy(job)) return publish(job);
  const bool hurried = job.row.cancelling || job.stopping;
  if (!hurried && !job.refined && compiler_->refines(job.row.options.cover)) return refine(job);
  if (hurried) {
    // A search that was cut short may have nothing yet, where an earlier one did.
    auto known = known_records(*store_, *job.plan);
    if (!known.ok()) return finish(job, JobState::kFailed, known.status());
    job.records.merge(*std::move(known));
  }
  auto launches = choose_launches(*job.plan, job.records);
  if (!launches.ok()) {
    return job.row.cancelling ? finish(job, JobState::kCancelled, absl::OkStatus())
                              : finish(job, JobState::kFailed, launches.status());
  }
  if (!hurried) {
    const absl::Status status = want_parts_in_use(job, *launches);
    if (!status.ok()) return finish(job, JobState::kFailed, status);
    if (busy(job)) return publish(job);
  }
  finish(job, job.row.cancelling ? JobState::kCancelled : JobState::kSucceeded, absl::OkStatus());
}

// Parts that beat their fused group deserve a search of their own, and then the group another look.
absl::Status Jobs::want_parts_in_use(ActiveJob& job, const std::vector<Chosen>& launches) {
  const std::set<std::string> parts = parts_in_use(*job.plan, launches);
  for (const PlannedGroup& group : job.plan->groups) {
    if (!parts.contains(group.key) || job.wanted[group.key] >= job.row.options.trials) continue;
    WL_RETURN_IF_ERROR(want(job, group, job.row.options.trials));
  }
  if (busy(job)) return absl::OkStatus();
  for (const auto& [whole, part] : replaced_groups(*job.plan, launches))
    WL_RETURN_IF_ERROR(try_plan_of_part(job, job.plan->groups[whole], job.plan->groups[part]));
  return absl::OkStatus();
}

void Jobs::finish(ActiveJob& job, JobState state, absl::Status error) {
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
      result->total_s = std::chrono::duration<double>(Clock::now() - job.begun).count();
      job.row.result = *std::move(result);
      if (state == JobState::kSucceeded) answer = result_key(job.row.graph, *job.row.device, job.row.options);
    } else if (state == JobState::kSucceeded) {
      job.row.state = JobState::kFailed;
      job.row.error = result.status();
    }
  }
  const absl::Status stored = store_->finish_job(job.row, answer);
  if (!stored.ok() && job.row.error.ok()) {
    job.row.state = JobState::kFailed;
    job.row.error = stored;
  }
  publish(job);
  const int64_t id = job.row.id;
  searches_->leave(id);
  jobs_.erase(id);
  // What the store could not take is at least said to who asks while this process lives.
  if (stored.ok()) views_->forget(id);
}

void Jobs::store_failed(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
      break;
    default:
      return;
  }
  loop_->post([this, status] {
    std::vector<int64_t> ids;
    for (const auto& [id, job] : jobs_) ids.push_back(id);
    for (int64_t id : ids) finish(jobs_.at(id), JobState::kFailed, status);
  });
}

void Jobs::stop_searches(ActiveJob& job, bool leased_too) {
  const auto goes_on = [&](int64_t id) {
    const auto found = jobs_.find(id);
    return found != jobs_.end() && !found->second.row.cancelling && !found->second.stopping;
  };
  for (const auto& [key, id] : job.searches) {
    Search& search = searches_->at(id);
    if (search.end != Search::End::kOpen || search.stop) continue;
    if (std::any_of(search.jobs.begin(), search.jobs.end(), goes_on)) continue;
    searches_->stop(search, job.row.cancelling, leased_too);
  }
}

}  // namespace wl

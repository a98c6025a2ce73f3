#include "server/engine/jobs.h"

#include <algorithm>

#include "server/engine/devices.h"
#include "server/jobs/reverify.h"

namespace wl {

std::function<absl::Status()> Jobs::waiting_for_job(const ActiveJob& job) const {
  std::optional<Clock::time_point> end = job.deadline;
  // Planning has no time limit for a job that was running when the coordinator restarted: even after its budget is
  // over, the job needs its plan in order to answer with the records that exist.
  const TuneOptions& asked = job.row.options;
  if (!end && job.row.state == JobState::kQueued && asked.budget_s > 0)
    end = Clock::now() + duration_of(asked.budget_s) - std::chrono::milliseconds(unix_ms_now() - job.row.created_ms);
  return waiting_for(asked, end, *loop_, [over = job.over.get_token()] { return over.stop_requested(); });
}

absl::StatusOr<Records> known_records(Store& store, const JobPlan& plan, const std::string& team) {
  Records records;
  for (const PlannedGroup& group : plan.groups) {
    WL_ASSIGN_OR_RETURN(auto record, store.record_by_key(group.key, environment_of(plan.device), {.team = team}));
    if (record) records.emplace(group.key, std::move(record->record));
  }
  return records;
}

void find_missing(Store& store, const Elsewhere& elsewhere, const JobPlan& plan, const JobRow& job,
                  const Elsewhere::Done& done) {
  if (!elsewhere.find_records || job.options.retune) return done("");
  const auto known = known_records(store, plan, job.team);
  std::vector<RecordName> missing;
  for (const PlannedGroup& group : plan.groups)
    if (known.ok() && !known->contains(group.key)) missing.push_back({group.key, environment_of(plan.device)});
  if (missing.empty()) return done("");
  elsewhere.find_records(missing, done);
}

void Jobs::recover(std::vector<JobRow> rows) {
  for (const JobRow& row : rows) recovering_.insert(row.id);
  if (rows.empty()) recovered_();
  for (JobRow& row : rows) {
    log_line(spdlog::level::info, "job goes on", fields_of(row));
    adopt(std::move(row), std::nullopt);
  }
}

// Notes that a job from before the restart was taken up. Once the last of these jobs was taken up, the searches of all
// jobs are known. From then on, renewals of leases that belong to none of these searches are refused.
void Jobs::taken_up(int64_t id) {
  if (recovering_.erase(id) > 0 && recovering_.empty()) recovered_();
}

void Jobs::adopt(JobRow row, std::optional<JobPlan> plan, const std::string& caller) {
  const int64_t id = row.id;
  const auto [at, is_new] = jobs_.try_emplace(id);
  ActiveJob& job = at->second;
  if (!is_new && (job.plan || job.planning)) return;
  if (is_new) {
    job.row = std::move(row);
    job.caller = caller;
  }
  if (!job.row.device) {
    auto device = workers_->device_for(job.row.options, job.row.team);
    if (!device.ok()) {
      taken_up(id);
      if (absl::IsNotFound(device.status())) return publish(job);
      return finish(job, JobState::kFailed, device.status());
    }
    job.row.device = *std::move(device);
  }
  if (plan) return take_plan(id, *std::move(plan));
  publish(job);
  make_plan_of(job);
}

void Jobs::take_plan(int64_t id, absl::StatusOr<JobPlan> plan) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return taken_up(id);
  ActiveJob& job = found->second;
  absl::Status status = plan.status();
  const std::shared_ptr<ActiveJob::Planning> planning = std::exchange(job.planning, nullptr);
  if (planning != nullptr && planning->noted) status.Update(store_->set_job_planning(id, false).status());
  if (was_left(status)) return;
  if (status.ok()) {
    job.plan = *std::move(plan);
    status = begin(job);
  }
  taken_up(id);
  if (!status.ok()) return finish(job, JobState::kFailed, std::move(status));
  if (job.row.cancelling) stop_searches(job, true);
  advance(id);
}

// Begins a job whose device and plan are known: its state becomes kRunning.
absl::Status Jobs::begin(ActiveJob& job) {
  if (job.row.state == JobState::kQueued) {
    job.row.state = JobState::kRunning;
    job.row.started_ms = unix_ms_now();
    WL_RETURN_IF_ERROR(store_->set_job_running(job.row.id, *job.row.device, job.row.started_ms));
  }
  job.begun = Clock::now() - std::chrono::milliseconds(std::max<int64_t>(0, unix_ms_now() - job.row.started_ms));
  if (job.row.options.budget_s > 0) job.deadline = job.begun + duration_of(job.row.options.budget_s);
  WL_ASSIGN_OR_RETURN(job.known, known_plans(job.row));
  if (!effort_of(job.row.options).compares) {
    // Which kernels the answer has follows from what the store knows of all of the plan's groups.
    WL_ASSIGN_OR_RETURN(job.records, known_records(*store_, *job.plan, job.row.team));
  }
  return job.reverifying ? absl::OkStatus() : need_wanted(job).status();
}

void Jobs::plan_queued() {
  std::vector<int64_t> queued;
  for (const auto& [id, job] : jobs_) {
    if (!job.plan) queued.push_back(id);
  }
  for (int64_t id : queued) adopt(jobs_.at(id).row, std::nullopt);
}

void Jobs::worker_refused(const std::vector<Device>& devices, const absl::Status& why) {
  std::vector<int64_t> waiting;
  for (const auto& [id, found] : jobs_) {
    // A named reference is needed, because clang-tidy's clang rejects lambdas that capture structured bindings.
    const ActiveJob& job = found;
    const bool served = !job.row.device || any_serves(devices, *job.row.device);
    if (served && (!job.row.device || workers_->serving(*job.row.device, job.row.team) == 0)) waiting.push_back(id);
  }
  for (int64_t id : waiting) finish(jobs_.at(id), JobState::kFailed, why);
}

void Jobs::cancel(int64_t id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end() || job->second.row.cancelling) return;
  job->second.row.cancelling = true;
  job->second.over.request_stop();
  if (!job->second.plan) return finish(job->second, JobState::kCancelled, absl::OkStatus());
  if (!job->second.reverifying) stop_searches(job->second, true);
  advance(id);
}

std::optional<JobRow> Jobs::row_of(int64_t id) const {
  const auto job = jobs_.find(id);
  return job == jobs_.end() ? std::nullopt : std::optional(job->second.row);
}

std::vector<Device> Jobs::devices_in_use() const {
  std::vector<Device> devices;
  for (const auto& [id, job] : jobs_)
    if (job.row.device) devices.push_back(*job.row.device);
  return devices;
}

void Jobs::tick() {
  std::vector<int64_t> ids;
  for (const auto& [id, job] : jobs_) ids.push_back(id);
  for (int64_t id : ids)
    if (const auto found = jobs_.find(id); found != jobs_.end()) tick(found->second);
}

void Jobs::tick(ActiveJob& job) {
  const TuneOptions& asked = job.row.options;
  if (job.planning) note_long_planning(job);
  if (!job.plan) {
    const double waited_s = static_cast<double>(unix_ms_now() - job.row.created_ms) / 1e3;
    if (asked.budget_s <= 0 || waited_s < asked.budget_s || job.planning) return;
    return finish(job, JobState::kFailed,
                  absl::UnavailableError(cat("the budget of ", asked.budget_s, " s is over, and no worker for target ",
                                             asked.target, " has registered; start one and ask again")));
  }
  if (job.reverifying) return advance_reverifying(job);
  if (job.in_place) return advance_in_place(job);
  // The last part of the budget is left for promotions: a tenth of it, but at most two seconds for every group that
  // has a search. So searches are stopped when that part begins.
  const double reserve = std::min(asked.budget_s / 10, 2.0 * static_cast<double>(job.searches.size()));
  if (job.deadline && !job.stopping && Clock::now() > *job.deadline - duration_of(reserve)) {
    job.stopping = true;
    stop_searches(job, false);
  }
  const bool over = job.row.cancelling || (job.deadline && Clock::now() > *job.deadline);
  const bool late = job.promotes_until && Clock::now() > *job.promotes_until;
  if (late || (over && workers_->serving(*job.row.device, job.row.team) == 0)) {
    job.let_go = true;
    let_go(job);
    advance(job.row.id);
  } else if (Clock::now() - job.published >= kTimesEvery) {
    // Only the times and the number of workers change without an event; other changes are published when they happen.
    publish(job);
  }
}

void Jobs::on_round(const Search& search) {
  for (int64_t id : search.jobs) publish(jobs_.at(id));
}

void Jobs::on_record(const Search& search, const KernelRecord& record, Origin origin) {
  if (origin != Origin::kKnown && options_.promoted) options_.promoted(record.key);
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

// Called after an interim promotion of a search. Jobs that only waited for its record, such as those whose budget is
// over, leave the search.
void Jobs::on_interim(const Search& search) {
  const std::set<int64_t> waiting = search.jobs;
  const int64_t search_id = search.row.id;
  const std::string key = search.group.key;
  for (int64_t id : waiting) {
    if (jobs_.at(id).reverifying) {
      advance(id);
      continue;
    }
    if (goes_on(id)) continue;
    jobs_.at(id).searches.erase(key);
    searches_->leave(id, search_id);
    advance(id);
  }
}

// Called when the search has found that a record of another environment cannot be used in this one. Jobs that verify
// such records again store this outcome; other jobs go on with the search.
void Jobs::on_lost(const Search& search) {
  const std::set<int64_t> waiting = search.jobs;
  const std::string key = search.group.key;
  for (int64_t id : waiting) {
    ActiveJob& job = jobs_.at(id);
    if (job.reverifying) lose(job, key, absl::NotFoundError(""));
  }
}

void Jobs::on_failure(const Search& search, const absl::Status& status) {
  const std::set<int64_t> waiting = search.jobs;
  const std::string key = search.group.key;
  for (int64_t id : waiting) {
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) continue;
    if (job->second.reverifying) {
      lose(job->second, key, status);
    } else {
      finish(job->second, JobState::kFailed, status);
    }
  }
}

std::string Jobs::trace_of(const Search& search) const {
  return search.jobs.empty() ? "" : jobs_.at(*search.jobs.begin()).row.trace;
}

bool Jobs::busy(const ActiveJob& job) const {
  return std::any_of(job.searches.begin(), job.searches.end(),
                     [&](const auto& item) { return searches_->at(item.second).end == Search::End::kOpen; });
}

// Continues a job when none of its searches is open: refines the cover, searches more, or ends the job.
void Jobs::advance(int64_t job_id) {
  const auto at = jobs_.find(job_id);
  if (at == jobs_.end() || !at->second.plan) return;
  ActiveJob& job = at->second;
  if (job.reverifying) return advance_reverifying(job);
  if (job.in_place) return advance_in_place(job);
  if (busy(job)) return publish(job);
  const bool hurried = job.row.cancelling || job.stopping;
  if (!hurried && !job.refined && chooses_again(job.row.options, *compiler_)) return refine(job);
  // A record that the store has may decide what is wanted next, as the end of a search does.
  for (bool added = !hurried; added;) {
    const absl::StatusOr<bool> wanted = need_wanted(job);
    if (!wanted.ok()) return finish(job, JobState::kFailed, wanted.status());
    if (busy(job)) return publish(job);
    added = *wanted;
  }
  if (hurried) {
    // A search that was cut short may have no record yet. The store may have a record of an earlier search, which is
    // then used instead.
    auto known = known_records(*store_, *job.plan, job.row.team);
    if (!known.ok()) return finish(job, JobState::kFailed, known.status());
    job.records.merge(*std::move(known));
  }
  auto launches = choose_launches(*job.plan, job.records);
  if (!launches.ok() && !hurried && !std::exchange(job.last_cover, true)) {
    if (const auto wanted = need_wanted(job); !wanted.ok()) return finish(job, JobState::kFailed, wanted.status());
    if (busy(job)) return publish(job);
    launches = choose_launches(*job.plan, job.records);
  }
  if (!launches.ok()) {
    if (job.row.cancelling) return finish(job, JobState::kCancelled, absl::OkStatus());
    return finish(job, JobState::kFailed, job.let_go ? why_unfinished(job) : launches.status());
  }
  if (!hurried) {
    const absl::Status status = need_parts_in_use(job, *launches);
    if (!status.ok()) return finish(job, JobState::kFailed, status);
    if (busy(job)) return publish(job);
    const absl::StatusOr<bool> decided = decide_whole(job);
    if (!decided.ok()) return finish(job, JobState::kFailed, decided.status());
    if (!*decided) return publish(job);
  }
  finish(job, job.row.cancelling ? JobState::kCancelled : JobState::kSucceeded, absl::OkStatus());
}

// Asks for more trials of the parts that replace a slower fused group, then tries the winning plans of these parts on
// the fused group.
absl::Status Jobs::need_parts_in_use(ActiveJob& job, const std::vector<Chosen>& launches) {
  const std::set<std::string> parts = parts_in_use(*job.plan, launches);
  for (const PlannedGroup& group : job.plan->groups) {
    if (!parts.contains(group.key) || job.needed[group.key] >= job.row.options.trials) continue;
    WL_RETURN_IF_ERROR(need(job, group, job.row.options.trials));
  }
  if (busy(job) || !effort_of(job.row.options).compares) return absl::OkStatus();
  for (const auto& [whole, part] : replaced_groups(*job.plan, launches))
    WL_RETURN_IF_ERROR(try_plan_of_part(job, job.plan->groups[whole], job.plan->groups[part]));
  return absl::OkStatus();
}

void Jobs::finish(ActiveJob& job, JobState state, absl::Status error) {
  job.over.request_stop();
  job.row.state = state;
  job.row.error = std::move(error);
  job.row.finished_ms = unix_ms_now();
  if (job.plan) job.row.trials = progress_of(job, *searches_).trials_done;
  job.row.cached = job.plan && !job.reverifying && job.searched.empty() && job.searches.empty();
  std::string answer;
  if (job.plan && !job.in_place && (state == JobState::kSucceeded || state == JobState::kCancelled)) {
    auto result = job.reverifying ? reverified_result(*job.plan, job.records, job.transferred)
                                  : assemble(*job.plan, job.records, job.searched, job.transferred);
    if (result.ok()) {
      result->cover_rounds = job.cover_rounds;
      result->cover_certified = job.cover_certified;
      result->covers = job.whole.timed;
      result->rates = workers_->rates_of(*job.row.device, job.row.team);
      result->total_s = std::chrono::duration<double>(Clock::now() - job.begun).count();
      job.row.result = *std::move(result);
      if (state == JobState::kSucceeded && !job.reverifying && effort_of(job.row.options).compares)
        answer = result_key(job.row.graph, *job.row.device, job.row.options, job.row.team);
    } else if (state == JobState::kSucceeded) {
      job.row.state = JobState::kFailed;
      job.row.error = absl::Status(result.status().code(), cat(result.status().message(), why_none(job)));
    }
  }
  if (job.row.result && !job.row.own) options_.found(found_in(*job.row.result, job.records));
  const absl::Status stored = store_->finish_job(job.row, answer);
  if (!stored.ok() && job.row.error.ok()) {
    job.row.state = JobState::kFailed;
    job.row.error = stored;
  }
  log_line(spdlog::level::info, "job ended", fields_of(job.row));
  options_.job_ended(job.row.state);
  publish(job);
  const int64_t id = job.row.id;
  if (job.reverifying && job.row.state == JobState::kSucceeded) winners_verified_(*job.row.device, job.row.team);
  searches_->leave(id);
  races_->leave(id);
  jobs_.erase(id);
  // If the outcome could not be stored, the view stays, so that clients can read the outcome while this process lives.
  if (stored.ok()) views_->forget(id);
}

bool Jobs::goes_on(int64_t id) const {
  const auto found = jobs_.find(id);
  return found != jobs_.end() && !found->second.row.cancelling && !found->second.stopping;
}

// Stops the job's searches. A search that other jobs need makes an interim promotion and goes on.
void Jobs::stop_searches(ActiveJob& job, bool leased_too) {
  job.promotes_until = job.row.cancelling
                           ? Clock::now() + kPromotesFor
                           : *job.deadline + std::clamp<Clock::duration>(duration_of(job.row.options.budget_s),
                                                                         kPromotesFor, kMostPromotes);
  for (const auto& [key, id] : job.searches) {
    Search& search = searches_->at(id);
    if (search.end != Search::End::kOpen || search.stop) continue;
    if (std::any_of(search.jobs.begin(), search.jobs.end(), [&](int64_t other) { return goes_on(other); })) {
      searches_->promote_interim(search);
    } else {
      searches_->stop(search, job.row.cancelling, leased_too);
    }
  }
}

// Makes the job leave all its searches that have not ended.
void Jobs::let_go(ActiveJob& job) {
  for (auto at = job.searches.begin(); at != job.searches.end();) {
    const int64_t id = at->second;
    if (searches_->at(id).end != Search::End::kOpen) {
      ++at;
      continue;
    }
    at = job.searches.erase(at);
    searches_->leave(job.row.id, id);
  }
}

}  // namespace wl

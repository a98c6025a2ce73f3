#include "server/engine/engine.h"

#include <algorithm>

#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"
#include "proto/wire.h"
#include "server/engine/state.h"

namespace wl {
namespace {

constexpr auto kTick = std::chrono::milliseconds(250);

int64_t trials_of(const TuneOptions& options) {
  if (options.trials > 0) return options.trials;
  return options.effort == "quick" ? 8 : options.effort == "thorough" ? 128 : 32;
}

}  // namespace

std::string job_name(int64_t id) {
  return cat("jobs/", id);
}

std::optional<int64_t> job_id(const std::string& name) {
  const std::string digits = name.starts_with("jobs/") ? name.substr(5) : name;
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(digits);
}

Engine::Engine(Store* store, const Compiler* compiler, const EngineOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->store = store;
  impl_->compiler = compiler;
  impl_->options = options;
  // A restarted coordinator's versions are above those its watchers saw.
  impl_->version = static_cast<uint64_t>(unix_ms_now()) << 10;
}

Engine::~Engine() {
  stop();
}

const Compiler& Engine::compiler() const {
  return *impl_->compiler;
}

absl::Status Engine::start() {
  // Here and not on the engine's thread, which may come late: a job made from now on is handed over with its plan.
  WL_ASSIGN_OR_RETURN(std::vector<JobRow> unfinished, impl_->store->unfinished_jobs());
  impl_->post([this, rows = std::move(unfinished)] { impl_->recover(rows); });
  impl_->thread = std::thread([this] { impl_->serve(); });
  for (int i = 0; i < std::max(1, impl_->options.check_threads); ++i) {
    impl_->pool.emplace_back([this] { impl_->serve_pool(); });
  }
  return absl::OkStatus();
}

void Engine::drain() {
  const std::lock_guard lock(impl_->mutex);
  impl_->draining = true;
  impl_->work_changed.notify_all();
}

void Engine::leave() {
  drain();
  const std::lock_guard lock(impl_->mutex);
  impl_->leaving = true;
  impl_->views_changed.notify_all();
}

bool Engine::draining() {
  const std::lock_guard lock(impl_->mutex);
  return impl_->draining;
}

void Engine::stop() {
  leave();
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->events_changed.notify_all();
  impl_->pool_changed.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
  for (std::thread& thread : impl_->pool) thread.join();
  impl_->pool.clear();
}

void Engine::Impl::post(std::function<void()> event) {
  {
    const std::lock_guard lock(mutex);
    events.push_back(std::move(event));
    ++computing;
  }
  events_changed.notify_one();
}

void Engine::Impl::compute(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex);
    pool_work.push_back(std::move(work));
    ++computing;
  }
  pool_changed.notify_one();
}

void Engine::Impl::mark(int64_t search_id) {
  if (!dirty.insert(search_id).second) return;
  const std::lock_guard lock(mutex);
  ++computing;
}

// Events first, then one step of one search, then events again: an answer never waits for more than one step.
void Engine::Impl::serve() {
  Clock::time_point last_tick = Clock::now();
  for (;;) {
    std::function<void()> event;
    {
      std::unique_lock lock(mutex);
      if (dirty.empty()) events_changed.wait_for(lock, kTick, [&] { return stopping || !events.empty(); });
      if (stopping) return;
      if (!events.empty()) {
        event = std::move(events.front());
        events.pop_front();
      }
    }
    const bool stepping = !event && !dirty.empty();
    if (event) {
      event();
    } else if (stepping) {
      const int64_t id = *dirty.begin();
      dirty.erase(dirty.begin());
      if (const auto found = searches.find(id); found != searches.end()) step(found->second);
    }
    if (Clock::now() - last_tick >= kTick) {
      last_tick = Clock::now();
      tick();
    }
    if (event || stepping) {
      const std::lock_guard lock(mutex);
      if (--computing == 0) work_changed.notify_all();
    }
  }
}

void Engine::Impl::serve_pool() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex);
      pool_changed.wait(lock, [&] { return stopping || !pool_work.empty(); });
      if (stopping) return;
      work = std::move(pool_work.front());
      pool_work.pop_front();
    }
    work();
    const std::lock_guard lock(mutex);
    if (--computing == 0) work_changed.notify_all();
  }
}

void Engine::Impl::recover(const std::vector<JobRow>& unfinished) {
  for (const JobRow& row : unfinished) adopt(row, std::nullopt);
  const std::lock_guard lock(mutex);
  recovering = false;
}

void Engine::Impl::tick() {
  expire();
  std::vector<int64_t> ids;
  for (const auto& [id, job] : jobs) ids.push_back(id);
  for (int64_t id : ids) {
    const auto found_job = jobs.find(id);
    if (found_job == jobs.end() || !found_job->second.plan) continue;
    ActiveJob& job = found_job->second;
    // Promotions need some of the budget: a tenth, but no more than two seconds for every group that still searches.
    const double reserve = std::min(job.row.options.budget_s / 10, 2.0 * static_cast<double>(job.searches.size()));
    const auto reserved = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(reserve));
    if (job.deadline && !job.stopping && Clock::now() > *job.deadline - reserved) {
      job.stopping = true;
      stop_searches(job, false);
    }
    if (job.row.cancelling && workers_for(*job.row.device) == 0) {
      // Nobody is there to promote anything.
      for (const auto& [key, search] : job.searches) {
        Search& found = searches.at(search);
        if (found.end == Search::End::kOpen && found.jobs.size() == 1) {
          drop(found, true);
          found.end = Search::End::kNothing;
        }
      }
      advance(id);
    } else {
      publish(job);
    }
  }
}

absl::StatusOr<Device> Engine::device_for(const TuneOptions& options) {
  return impl_->device_for(options);
}

absl::StatusOr<Device> Engine::Impl::device_for(const TuneOptions& asked) {
  if (asked.device) {
    if (auto device = device_as(*asked.device, asked.target)) return *device;
    return invalid("target ", asked.target, ": the given device is a ", asked.device->target);
  }
  std::vector<Device> known;
  {
    const std::lock_guard lock(mutex);
    std::vector<const WorkerState*> sorted;
    for (const auto& [name, worker] : workers) {
      if (alive(worker)) sorted.push_back(&worker);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->seen_ms > b->seen_ms; });
    for (const WorkerState* worker : sorted) known.insert(known.end(), worker->devices.begin(), worker->devices.end());
  }
  WL_ASSIGN_OR_RETURN(std::vector<Device> stored, store->devices());
  known.insert(known.end(), stored.begin(), stored.end());
  for (const Device& device : known) {
    if (auto found = device_as(device, asked.target)) return *found;
  }
  return absl::NotFoundError(cat("no worker for target ", asked.target, " has registered yet; start one"));
}

absl::StatusOr<Job> Engine::create(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                                   const std::string& label) {
  if (request_id.empty()) return invalid("request_id: expected a UUID, found nothing");
  JobRow row;
  row.request_id = request_id;
  row.label = label;
  row.graph = graph;
  row.options = options;
  row.body_hash = sha256_hex(cat(encode(options), "\n", label, "\n", graph));
  row.options.trials = trials_of(options);
  row.created_ms = unix_ms_now();
  WL_RETURN_IF_ERROR(impl_->compiler->known_strategy(options.strategy));
  WL_RETURN_IF_ERROR(impl_->compiler->known_cover(options.cover));
  if (options.target.find(':') != std::string::npos) WL_RETURN_IF_ERROR(target_named(options.target).status());
  WL_ASSIGN_OR_RETURN(std::optional<JobRow> known, impl_->store->job_by_request(request_id));
  if (known) {
    WL_ASSIGN_OR_RETURN(JobRow same, impl_->store->create_job(row));
    return get(same.id);
  }

  auto device = impl_->device_for(options);
  if (!device.ok() && !absl::IsNotFound(device.status())) return device.status();
  std::string answer;
  std::optional<JobPlan> plan;
  const auto done = [&](JobState state) {
    row.state = state;
    row.finished_ms = unix_ms_now();
  };
  if (device.ok()) {
    row.device = *device;
    answer = result_key(graph, *device, options);
    if (!options.retune) {
      WL_ASSIGN_OR_RETURN(auto whole, impl_->store->whole_answer(answer));
      const bool enough =
          whole && (options.require_cached ||
                    (whole->trials_asked >= row.options.trials &&
                     (whole->budget_s == 0 || (options.budget_s > 0 && whole->budget_s >= options.budget_s))));
      if (enough) {
        row.result = std::move(whole->result);
        row.cached = true;
        done(JobState::kSucceeded);
        answer.clear();
      }
    }
    if (!row.result) {
      WL_ASSIGN_OR_RETURN(plan, make_plan(graph, row.options, *device, *impl_->compiler));
      absl::Status status;
      const Records records = impl_->known_records(*plan, &status);
      WL_RETURN_IF_ERROR(status);
      int64_t missing = 0;
      for (const PlannedGroup& group : plan->groups) {
        const auto record = records.find(group.key);
        const int64_t needed = group.searched() && !options.require_cached ? row.options.trials : 1;
        missing += options.retune || record == records.end() || !satisfies(record->second, needed, options.budget_s);
      }
      if (missing == 0 && (options.require_cached || !impl_->compiler->refines(options.cover))) {
        if (auto result = assemble(*plan, records, {}); result.ok()) {
          row.result = *std::move(result);
          row.cached = true;
          done(JobState::kSucceeded);
        }
      } else if (options.require_cached) {
        row.error = absl::NotFoundError(cat(missing, " of ", plan->groups.size(), " groups are not in the store"));
      }
    }
  } else {
    WL_RETURN_IF_ERROR(parse(graph).status());
    if (options.require_cached) row.error = absl::NotFoundError(device.status().message());
  }
  if (options.require_cached && !row.result) {
    done(JobState::kNotCached);
  } else if (!row.result) {
    row.state = device.ok() ? JobState::kRunning : JobState::kQueued;
    if (device.ok()) row.started_ms = row.created_ms;
  }
  WL_ASSIGN_OR_RETURN(JobRow made, impl_->store->create_job(row, answer));
  if (!is_done(made.state)) {
    {
      // A view from the start, so that nobody finds the job missing while the engine takes it up.
      const std::lock_guard lock(impl_->mutex);
      auto& view = impl_->views[made.id];
      if (!view) {
        view = std::make_shared<View>();
        view->job.name = job_name(made.id);
        view->job.state = made.state;
        view->job.label = made.label;
        view->job.options = made.options;
        view->job.created_unix_ms = made.created_ms;
        view->job.device = made.device;
        view->job.version = ++impl_->version;
      }
    }
    impl_->post([impl = impl_.get(), made, taken = std::move(plan)]() mutable {
      impl->adopt(std::move(made), std::move(taken));
    });
  }
  return get(made.id);
}

absl::StatusOr<Job> Engine::get(int64_t id) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (const auto view = impl_->views.find(id); view != impl_->views.end()) return view->second->job;
  }
  WL_ASSIGN_OR_RETURN(std::optional<JobRow> row, impl_->store->job(id));
  if (!row) return absl::NotFoundError(cat("there is no job ", job_name(id)));
  return job_of(*row);
}

absl::StatusOr<Job> Engine::cancel(int64_t id) {
  WL_RETURN_IF_ERROR(get(id).status());
  WL_RETURN_IF_ERROR(impl_->store->set_job_cancelling(id));
  impl_->post([impl = impl_.get(), id] {
    const auto job = impl->jobs.find(id);
    if (job == impl->jobs.end() || job->second.row.cancelling) return;
    job->second.row.cancelling = true;
    if (job->second.plan) {
      impl->stop_searches(job->second, true);
      impl->advance(id);
    } else {
      impl->finish(job->second, JobState::kCancelled, absl::OkStatus());
    }
  });
  return get(id);
}

absl::StatusOr<std::optional<Job>> Engine::wait_change(int64_t id, uint64_t seen, std::chrono::milliseconds timeout) {
  {
    std::unique_lock lock(impl_->mutex);
    const auto found = impl_->views.find(id);
    if (found != impl_->views.end()) {
      const std::shared_ptr<View> view = found->second;
      impl_->views_changed.wait_for(lock, timeout, [&] { return impl_->leaving || view->job.version != seen; });
      if (impl_->leaving) return absl::UnavailableError("the coordinator is going down; ask again");
      if (view->job.version == seen) return std::nullopt;
      return view->job;
    }
  }
  WL_ASSIGN_OR_RETURN(Job job, get(id));
  return job;
}

Job job_of(const JobRow& row) {
  Job job;
  job.name = job_name(row.id);
  job.state = row.state;
  job.label = row.label;
  job.options = row.options;
  job.cached = row.cached;
  job.version = static_cast<uint64_t>(row.finished_ms) << 10;
  job.result = row.result;
  job.error = row.error;
  job.created_unix_ms = row.created_ms;
  job.finished_unix_ms = row.finished_ms;
  job.device = row.device;
  job.cancelling = row.cancelling;
  return job;
}

}  // namespace wl

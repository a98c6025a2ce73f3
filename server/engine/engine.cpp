#include "server/engine/engine.h"

#include <future>

#include "compiler/base/sha256.h"
#include "proto/trace.h"
#include "proto/wire.h"
#include "server/engine/impl.h"

namespace wl {
namespace {

// In embedded mode, the longest wait after a report until the coordinator no longer computes.
constexpr auto kQuietWithin = std::chrono::seconds(2);

int64_t trials_of(const TuneOptions& options) {
  return options.trials > 0 ? options.trials : effort_of(options).trials;
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

Engine::Engine(Store* store, const Compiler* compiler, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(store, compiler, options)) {}

Engine::~Engine() {
  stop();
}

bool Engine::leaving() const {
  return impl_->loop.leaving();
}

const Compiler& Engine::compiler() const {
  return *impl_->compiler;
}

absl::Status Engine::start() {
  // The unfinished jobs are read now, before the engine's thread starts. Jobs that are created from now on must not be
  // among them, since each of those is posted to that thread together with its plan.
  WL_ASSIGN_OR_RETURN(std::vector<JobRow> unfinished, impl_->store->unfinished_jobs());
  Impl* const impl = impl_.get();
  // The jobs get their views before the engine's thread starts, so that clients that watch these jobs find them.
  for (const JobRow& row : unfinished) {
    impl->views.begin(row.id, job_of(row));
    impl->memory.keep_anyway(row.id, plan_bytes(row.graph));
    if (row.own && row.options.background) impl->background.job = row.id;
  }
  impl->loop.post([impl, rows = std::move(unfinished)]() mutable { impl->jobs.recover(std::move(rows)); });
  impl->loop.start(
      impl->options.check_threads, [impl](int64_t search_id) { impl->searches.step(search_id); },
      [impl] {
        impl->end_lost();
        impl->leases.expire();
        impl->workers.forget_dead();
        impl->searches.tick();
        impl->races.tick();
        impl->jobs.tick();
        impl->look_for_demand();
        impl->memory.release_if([&](int64_t id) {
          const auto job = impl->views.find(id);
          return job == nullptr || is_done(job->state);
        });
      });
  return absl::OkStatus();
}

void Engine::drain(bool on) {
  impl_->leases.drain(on);
}

bool Engine::draining() {
  return impl_->leases.draining();
}

void Engine::leave() {
  impl_->loop.leave();
  impl_->leaving = true;
  impl_->leases.leave();
  impl_->views.leave();
}

void Engine::stop() {
  leave();
  impl_->loop.stop();
}

absl::StatusOr<Device> Engine::device_for(const TuneOptions& options, const std::string& team) {
  return impl_->workers.device_for(options, team);
}

absl::StatusOr<Job> Engine::create(const std::string& request_id, const std::string& graph, const TuneOptions& options,
                                   const std::string& label, const std::string& team, const std::string& trace,
                                   const std::function<bool()>& gone, const std::string& caller) {
  if (request_id.empty()) return invalid("request_id: expected a UUID, found nothing");
  JobRow row;
  row.team = team;
  row.trace = trace.empty() ? new_trace() : trace;
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
  WL_ASSIGN_OR_RETURN(std::unique_ptr<PlanMemory::Held> memory, impl_->memory.take(caller, plan_bytes(graph)));
  std::optional<Clock::time_point> over;
  if (options.budget_s > 0) over = Clock::now() + duration_of(options.budget_s);
  Work work(waiting_for(options, over, impl_->loop, gone));
  WL_ASSIGN_OR_RETURN(NewJob job, answer_or_plan(std::move(row), *impl_->store, *impl_->compiler, impl_->workers,
                                                 impl_->options.elsewhere, &work));
  WL_ASSIGN_OR_RETURN(JobRow made,
                      impl_->store->create_job(job.row, job.result_id, impl_->options.rules(team).most_jobs));
  log_line(spdlog::level::info, "job created", fields_of(made));
  if (is_done(made.state)) {
    log_line(spdlog::level::info, "job ended", fields_of(made));
    impl_->options.looked_up(job.hits, job.misses);
    if (job.row.result) impl_->options.found(found_in(*job.row.result));
    impl_->options.job_ended(made.state);
  } else {
    // The job gets its view before it is posted to the engine's thread, so that clients can find it at once.
    impl_->views.begin(made.id, job_of(made));
    impl_->memory.keep(made.id, std::move(memory));
    impl_->loop.post([impl = impl_.get(), made, plan = std::move(job.plan), caller]() mutable {
      impl->jobs.adopt(std::move(made), std::move(plan), caller);
    });
  }
  return get(made.id);
}

absl::StatusOr<std::shared_ptr<const void>> Engine::memory_for(const std::string& graph, const std::string& caller) {
  WL_ASSIGN_OR_RETURN(std::unique_ptr<PlanMemory::Held> held, impl_->memory.take(caller, plan_bytes(graph)));
  return std::shared_ptr<const void>(std::move(held));
}

absl::StatusOr<Job> Engine::get(int64_t id) {
  if (const auto job = impl_->views.find(id)) return *job;
  WL_ASSIGN_OR_RETURN(std::optional<JobRow> row, impl_->store->job(id));
  if (!row) return absl::NotFoundError(cat("there is no job ", job_name(id)));
  return job_of(*row);
}

absl::StatusOr<Job> Engine::cancel(int64_t id) {
  WL_RETURN_IF_ERROR(get(id).status());
  WL_RETURN_IF_ERROR(impl_->store->set_job_cancelling(id));
  impl_->loop.post([impl = impl_.get(), id] { impl->jobs.cancel(id); });
  return get(id);
}

absl::StatusOr<std::shared_ptr<JobWatch>> Engine::watch(int64_t id, uint64_t seen, TellJob tell) {
  std::shared_ptr<JobWatch> watch = impl_->views.watch(id, seen, tell);
  if (impl_->views.find(id) != nullptr) return watch;
  // A job without a view is done, or was created a moment ago and will soon get a view.
  absl::StatusOr<Job> job = get(id);
  if (!job.ok()) {
    impl_->views.unwatch(watch);
    return job.status();
  }
  if (is_done(job->state)) tell(std::make_shared<const Job>(*std::move(job)));
  return watch;
}

void Engine::unwatch(const std::shared_ptr<JobWatch>& watch) {
  impl_->views.unwatch(watch);
}

absl::StatusOr<uint64_t> Engine::register_worker(const std::string& name, uint64_t epoch,
                                                 const std::vector<Device>& devices, const std::string& team,
                                                 const std::string& machine, const std::vector<MeasuredRates>& rates) {
  if (name.empty() || devices.empty()) return invalid("worker \"", name, "\": needs a name and at least one device");
  for (const Device& device : devices) WL_RETURN_IF_ERROR(target_named(device.target).status());
  const auto added = impl_->workers.add(name, epoch, devices, team, machine, rates);
  if (!added.ok()) {
    if (!absl::IsFailedPrecondition(added.status()))
      impl_->loop.post(
          [impl = impl_.get(), devices, why = added.status()] { impl->jobs.worker_refused(devices, why); });
    return added.status();
  }
  const uint64_t given = *added;
  if (given != epoch) impl_->leases.welcome(name);
  // The older process of the worker is gone, so its leases are ended now instead of at their deadlines.
  impl_->loop.post([impl = impl_.get(), orphans = impl_->leases.of_older_processes(name, given), devices, team] {
    for (const Leases::Owned& orphan : orphans) impl->leases.end(orphan, LeaseEnd::kSuperseded);
    impl->jobs.plan_queued();
    impl->searches.tick();
    for (const Device& device : devices) impl->look_for_winners(device, team);
  });
  return given;
}

absl::StatusOr<RevokedRows> Engine::revoke(const std::string& principal) {
  // The principal's trials are removed from live searches before they are removed from the store. So no search can
  // promote a kernel that only the principal measured.
  std::promise<void> refuted;
  impl_->loop.post([&, impl = impl_.get()] {
    impl->searches.revoke(principal);
    refuted.set_value();
  });
  refuted.get_future().wait();
  return impl_->store->revoke(principal);
}

absl::Status Engine::attend(const std::string& name, uint64_t epoch) {
  return impl_->workers.attend(name, epoch);
}

absl::Status Engine::may_attend(const std::string& name, uint64_t epoch) {
  if (impl_->leaving) return absl::UnavailableError("the coordinator is going down; ask again");
  return impl_->workers.may_attend(name, epoch);
}

void Engine::left(const std::string& name, uint64_t epoch) {
  if (!impl_->leaving) impl_->workers.left(name, epoch);
}

// Ends the leases of workers whose connections are lost, without waiting for the deadlines of the leases.
void Engine::Impl::end_lost() {
  for (const auto& [name, epoch] : workers.take_lost()) {
    const std::vector<Leases::Owned> left = leases.of_process(name, epoch);
    log_line(left.empty() ? spdlog::level::info : spdlog::level::warn, "the connection of a worker has ended",
             {{"worker", name}});
    for (const Leases::Owned& owned : left) leases.end(owned, LeaseEnd::kExpired);
  }
}

std::shared_ptr<LeaseCall> Engine::acquire(const std::string& name, uint64_t epoch, int max,
                                           std::chrono::milliseconds wait, AcquireDone done) {
  return impl_->leases.acquire(name, epoch, max, Clock::now() + wait,
                               [impl = impl_.get(), name, epoch, done = std::move(done)](absl::StatusOr<Acquired> out) {
                                 if (out.ok()) (void)impl->workers.heard(name, epoch);
                                 done(std::move(out));
                               });
}

void Engine::cancel_acquire(const std::shared_ptr<LeaseCall>& call) {
  if (call != nullptr) impl_->leases.cancel(call);
}

RenewOutcome Engine::renew(const std::string& worker, const LeaseRef& lease, const std::string& phase, int64_t done) {
  const RenewOutcome outcome = impl_->leases.renew(worker, lease, phase, done);
  // Only a renewal by the holder of a lease shows that the worker is alive.
  if (outcome == RenewOutcome::kOk) impl_->workers.renewed(worker);
  return outcome;
}

absl::StatusOr<ReportOutcome> Engine::report(const std::string& worker, const std::string& batch_id,
                                             const LeaseRef& lease, std::vector<Trial> trials) {
  auto outcome = impl_->leases.report(worker, batch_id, lease, std::move(trials));
  // In embedded mode the worker, which may hold more batches, measures the next one once the trials are evaluated.
  if (impl_->options.share_machine && outcome.ok()) impl_->loop.wait_idle(kQuietWithin);
  return outcome;
}

bool Engine::has_lease(const std::string& principal) const {
  return impl_->leases.held_by(principal);
}

absl::Status Engine::put_blob(const std::string& digest, const std::string& bytes) {
  const absl::Status status = impl_->store->put_blob(digest, bytes);
  if (!status.ok() && !absl::IsInvalidArgument(status)) impl_->leases.upload_failed(status);
  return status;
}

void Engine::release(const std::string& worker, const LeaseRef& lease, LeaseEnd why) {
  impl_->leases.release(worker, lease, why);
}

std::vector<WorkerView> Engine::workers() {
  std::vector<WorkerView> out = impl_->workers.views();
  std::map<std::string, std::vector<WorkerDoing>> doing = impl_->leases.doing();
  for (WorkerView& worker : out) worker.doing = std::move(doing[process_of(worker.name, worker.epoch)]);
  return out;
}

std::map<std::string, int64_t> Engine::ready_candidates() {
  return impl_->leases.ready_candidates();
}

std::map<JobState, int64_t> Engine::unfinished_jobs() {
  std::map<JobState, int64_t> counts = impl_->views.counts();
  std::erase_if(counts, [](const auto& entry) { return is_done(entry.first); });
  return counts;
}

LogFields fields_of(const JobRow& row) {
  return {{"job", job_name(row.id)},
          {"trace", row.trace},
          {"state", kJobStateNames[static_cast<int>(row.state)]},
          {"label", row.label},
          {"target", row.options.target},
          {"team", row.team},
          {"error", std::string(row.error.message())}};
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
  job.trace = row.trace;
  job.progress.trials_done = job.progress.trials_total = row.trials;
  return job;
}

}  // namespace wl

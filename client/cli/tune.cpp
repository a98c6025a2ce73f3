#include "client/cli/tune.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>

#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/cli/process.h"
#include "client/cli/progress.h"
#include "client/cli/report_table.h"
#include "client/cli/table.h"
#include "client/cli/values.h"
#include "client/program/bucket.h"
#include "client/program/bundle.h"
#include "client/program/files.h"
#include "client/program/manifest.h"
#include "client/remote/ids.h"
#include "client/remote/lonely.h"
#include "client/remote/report.h"
#include "client/remote/trust.h"
#include "compiler/base/sha256.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

using Clock = std::chrono::system_clock;

// A coordinator ends a job by itself when its budget is used up. Beyond the budget, the client waits kSettle and, if a
// worker still measures, kFinish. After that it cancels the job and waits kEnd for the job's end.
constexpr auto kSettle = std::chrono::seconds(3), kFinish = std::chrono::seconds(60), kEnd = std::chrono::seconds(10);

// Returns the error for a job that the client cancelled at its budget and that has no result.
absl::Status budget_is_over(const Context& context, const Job& job, double budget_s) {
  const std::string who = job.progress.workers > 0
                              ? "its workers did not finish"
                              : cat("no worker served ", job.options.target,
                                    "; start one with `warploom-worker --server ", context.connection.server, "`");
  return absl::UnavailableError(cat("the budget of ", budget_s, " s is over and ", who,
                                    "; what was measured is kept: the same command continues from here"));
}

// Cancels a job that the client waits for. If the coordinator is unreachable, returns the error of unreachable(), which
// says where the results are, instead of the call's error.
absl::Status end_job(Service& service, const std::string& name) {
  const absl::Status cancelled = service.cancel_job(name, kEnd).status();
  return absl::IsUnavailable(cancelled) ? service.unreachable(name) : cancelled;
}

// What the first Ctrl-C ends while a job is followed: the job, or only this command.
enum class OnInterrupt { kEndJob, kEndWatch };

// How a job is followed.
struct Following {
  std::string progress;  // form of the display: the value of --progress
  Clock::time_point begun;
  OnInterrupt on_interrupt = OnInterrupt::kEndJob;
  double budget_s = 0;           // time budget of the job in seconds since `begun`; 0: no limit
  double wait_for_worker_s = 0;  // seconds that the job may be without a worker; 0: no limit
};

// Shows a job's progress on the terminal until it is done. Cancelled: an interrupt has ended the display, but not the
// job.
absl::StatusOr<Job> follow(Context& context, const Job& job, const Following& how) {
  ProgressDisplay display(how.progress);
  std::stop_source left;
  const std::stop_callback worker_ended(context.local.worker_ended(), [&] { left.request_stop(); });
  // A Service without a stop token, because an interrupt ends the command's other calls, but this one must still cancel
  // the job.
  Service teller = context.service.limited(kEnd, {});
  std::mutex showing;  // guards `display` and context.curves
  InterruptGuard guard([&] {
    if (how.on_interrupt == OnInterrupt::kEndWatch) {
      left.request_stop();
      return;
    }
    std::fprintf(stderr, "\nstopping; the best kernels so far are kept (again: stop at once)\n");
    const absl::Status status = end_job(teller, job.name);
    if (!status.ok()) std::fprintf(stderr, "cannot stop the job: %s\n", std::string(status.message()).c_str());
  });
  absl::StatusOr<Job> done =
      await_job(context, job,
                {.wait_for_worker_s = how.wait_for_worker_s,
                 .budget_s = how.budget_s,
                 .begun = how.begun,
                 .on_change =
                     [&](const Job& changed) {
                       const std::lock_guard lock(showing);
                       display.show(changed);
                       context.curves.add(changed.progress);
                     },
                 .on_lost =
                     [&](bool lost) {
                       const std::lock_guard lock(showing);
                       display.say(lost ? "the coordinator is unreachable; waiting for it" : "the coordinator is back");
                     },
                 .say =
                     [&](const std::string& line) {
                       const std::lock_guard lock(showing);
                       display.say(line);
                     },
                 .stop = left.get_token()});
  display.clear();
  // If the worker of this process has ended, its error explains why the job did not finish.
  if (!done.ok()) WL_RETURN_IF_ERROR(context.local.worker_error());
  if (absl::IsCancelled(done.status()) && how.on_interrupt == OnInterrupt::kEndWatch)
    return absl::CancelledError(
        cat("no longer watched; ", job.name, " goes on: `warploom watch` follows it again, `warploom cancel` ends it"));
  if (done.ok()) display.end(*done);
  return done;
}

struct Tuned {
  Job job;
  const GraphFile* file = nullptr;  // the job's graph; null if only the job's name is known
};

// Writes tables, bundle and report of finished jobs, one per size, and returns the exit code. `input`: the graph or job
// as the user named it. `retune`: whether the jobs were asked to search again.
absl::StatusOr<int> conclude(Context& context, const std::string& input, bool retune, const ResultOptions& to,
                             const std::vector<Tuned>& all) {
  // The measurements are kept, but a bundle would stay where nobody looks for it.
  if (is_left_alone()) return kExitInterrupted;
  const bool trust_workers = to.trust.trust_workers;
  bool interrupted = false;
  std::vector<SizedReport> reports;
  std::vector<TunedProgram> programs;
  for (const auto& [job, file] : all) {
    if (!job.result) return why_no_result(job);
    interrupted |= job.state == JobState::kCancelled;
    const Bind bind = file != nullptr ? file->bind : Bind();
    reports.push_back({bind, report_json(job, bind, input, /*stable=*/false, trust_workers)});
    if (to.report.json != "-") {
      if (!bind.empty()) std::printf("tuned for %s\n", bind_text(bind).c_str());
      std::fputs(report_table(job, wants_colour(STDOUT_FILENO), trust_workers).c_str(), stdout);
    }
    if (to.out.empty() || file == nullptr) continue;
    WL_ASSIGN_OR_RETURN(Program program,
                        fetch_program(context.service, objects_of(context, to.trust), *job.result, *file));
    programs.push_back({std::move(program), report_json(job, bind, input, /*stable=*/true, trust_workers)});
  }
  WL_RETURN_IF_ERROR(write_report(to.report.json, reports_json(reports)));
  // The page shows the last size, which is the only one: --html is refused for several sizes.
  WL_RETURN_IF_ERROR(write_page(context, input, to.report, reports.back(), *all.back().job.result));
  std::FILE* notes = to.report.json == "-" ? stderr : stdout;
  if (!programs.empty()) {
    WL_RETURN_IF_ERROR(write_buckets(to.out, programs));
    std::fprintf(notes, "bundle: %s (warploom run %s --check)\n", to.out.c_str(), to.out.c_str());
  } else if (all[0].file != nullptr) {
    const ConnectionOptions& connection = context.connection;
    std::fprintf(notes, "stored: %s; --out DIR writes a bundle\n",
                 context.embedded ? connection.store.c_str() : connection.server.c_str());
  }
  if (interrupted) {
    std::fprintf(stderr, "interrupted: the best kernels so far are kept; %s\n",
                 retune ? "--retune starts a new search" : "the same command continues from here");
    return kExitInterrupted;
  }
  return kExitDone;
}

// Gets one job from `ask` for every size that --bind names, one after the other, and passes all of them to conclude().
// After an interrupt, which ends the running job, no further job is asked for.
absl::StatusOr<int> ask_all(Context& context, const GraphOptions& graph, const ResultOptions& to,
                            const std::function<absl::StatusOr<Job>(const GraphFile&)>& ask) {
  std::vector<GraphFile> files;
  for (const Bind& bind : combinations(graph.bind)) {
    WL_ASSIGN_OR_RETURN(GraphFile file, read_input(context, graph, bind));
    files.push_back(std::move(file));
  }
  if (!to.out.empty()) WL_RETURN_IF_ERROR(may_become_bundle(to.out));
  if (!to.report.html.empty() && files.size() > 1)
    return invalid("--html makes a page of one size; --bind asks for ", files.size());
  std::vector<Tuned> all;
  for (const GraphFile& file : files) {
    WL_ASSIGN_OR_RETURN(Job job, ask(file));
    const bool interrupted = job.state == JobState::kCancelled;
    all.push_back({std::move(job), &file});
    if (interrupted) break;
  }
  return conclude(context, graph.file, graph.tune.retune, to, all);
}

// In embedded mode, sets the device of a job, which is one of this machine.
absl::Status set_device(Context& context, TuneOptions& options) {
  if (!context.embedded) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(options.device, context.local.device_for(options.target, /*must_run=*/true));
  return absl::OkStatus();
}

// Creates the job of a graph, and returns it when it is done.
absl::StatusOr<Job> tuned_job(Context& context, const GraphFile& file, const TuneCommandOptions& options) {
  TuneOptions tune = options.graph.tune;
  WL_RETURN_IF_ERROR(set_device(context, tune));
  const auto begun = Clock::now();
  WL_ASSIGN_OR_RETURN(Job job, context.service.create_job(new_request_id(), file.text, tune, file.label,
                                                          trace_of_job(options.job.trace)));
  if (is_done(job.state)) return job;
  if (context.embedded) {
    WL_RETURN_IF_ERROR(end_orphans(context, job.name));
    WL_RETURN_IF_ERROR(context.local.start_worker(!options.result.report.html.empty()));
  }
  return follow(context, job,
                {.progress = options.progress,
                 .begun = begun,
                 .on_interrupt = OnInterrupt::kEndJob,
                 .budget_s = tune.budget_s,
                 .wait_for_worker_s = options.job.wait_for_worker_s});
}

}  // namespace

absl::StatusOr<Job> await_job(Context& context, const Job& job, const Await& how) {
  Job seen = job;
  std::stop_source stop;
  const std::stop_callback told(how.stop, [&] { stop.request_stop(); });
  // Reports that no worker serves the job; absent in embedded mode, in which this process has a worker.
  std::optional<Lonely> lonely;
  if (!context.embedded && how.say) {
    lonely.emplace(&context.service, LonelyOptions{.server = context.connection.server,
                                                   .bound_s = how.wait_for_worker_s,
                                                   .say = how.say,
                                                   .give_up = [&] { stop.request_stop(); }});
    lonely->seen(job);
  }
  const auto watch = [&](std::optional<Clock::time_point> until) {
    return context.service.watch_job(job.name,
                                     [&](const Job& changed) {
                                       seen = changed;
                                       if (lonely) lonely->seen(changed);
                                       how.on_change(changed);
                                     },
                                     how.on_lost, {.until = until, .stop = stop.get_token()});
  };
  std::optional<Clock::time_point> over;
  if (how.budget_s > 0) {
    over = how.begun +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(how.budget_s, 1e9)));
  }
  absl::StatusOr<Job> done = watch(over ? std::optional(*over + kSettle) : std::nullopt);
  if (absl::IsDeadlineExceeded(done.status()) && seen.progress.workers > 0) done = watch(*over + kFinish);
  if (lonely && lonely->gave_up()) {
    WL_RETURN_IF_ERROR(end_job(context.service, job.name));
    return absl::UnavailableError(lonely->message());
  }
  if (!absl::IsDeadlineExceeded(done.status())) return done;
  WL_RETURN_IF_ERROR(end_job(context.service, job.name));
  done = watch(Clock::now() + kEnd);
  const bool nothing = done.ok() && done->state == JobState::kCancelled && !done->result;
  if (nothing || absl::IsDeadlineExceeded(done.status())) return budget_is_over(context, seen, how.budget_s);
  return done;
}

absl::Status end_orphans(Context& context, const std::string& mine) {
  constexpr int kRecent = 100;
  WL_ASSIGN_OR_RETURN(std::vector<Job> jobs, context.service.list_jobs(kRecent));
  for (const Job& job : jobs) {
    if (job.name != mine && !is_done(job.state)) WL_RETURN_IF_ERROR(context.service.cancel_job(job.name).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Job> stored_job(Context& context, const GraphFile& file, TuneOptions options) {
  options.require_cached = true;
  WL_RETURN_IF_ERROR(set_device(context, options));
  WL_ASSIGN_OR_RETURN(Job job, context.service.create_job(new_request_id(), file.text, options, file.label,
                                                          trace_of_job(/*given=*/"")));
  if (job.state == JobState::kNotCached && !job.error.ok()) {
    const ConnectionOptions& to = context.connection;
    job.error = absl::NotFoundError(
        cat(context.embedded ? cat("store ", to.store) : cat("coordinator ", to.server), ": ", job.error.message()));
  }
  if (is_done(job.state)) return job;
  return absl::DataLossError(cat(context.connection.server, " answers with ", job.name,
                                 ", which is not done, although nothing was to be searched; it is no coordinator of "
                                 "this version"));
}

// Compiles a record's source on this machine. DataLoss: the same compiler makes other bytes than the record's object.
absl::StatusOr<std::string> object_built_here(Context& context, const KernelRecord& record) {
  WL_ASSIGN_OR_RETURN(std::string object, context.local.build(record.source));
  const std::string here = context.local.compiler_for(record.source);
  if (sha256_hex(object) == record.object_sha256 || here.empty() ||
      here != compiler_of(record.environment, record.source))
    return object;
  return absl::DataLossError(
      cat("the kernel ", record.source.entry, " of key ", record.key,
          ": its object in the store is not what its source compiles to here by the same compiler (", here,
          "); it is not used: tell whoever runs the coordinator, and invalidate the key"));
}

FetchObject objects_of(Context& context, const TrustOptions& trust) {
  return [&context, trust](const KernelRecord& record) -> absl::StatusOr<std::string> {
    if (trust.build_locally) return object_built_here(context, record);
    const std::string doubt = trust.trust_workers ? std::string() : doubt_about(record, context.service.signers());
    if (doubt.empty()) return context.service.get_blob(record.object_sha256);
    absl::StatusOr<std::string> object = object_built_here(context, record);
    if (object.ok() || absl::IsDataLoss(object.status())) return object;
    return absl::PermissionDeniedError(
        cat(doubt, ", and it cannot be built here (", object.status().message(),
            "); have its compiler on this machine or on the coordinator's, or say --trust-workers to use it all the "
            "same"));
  };
}

absl::StatusOr<int> tune_command(Context& context, const TuneCommandOptions& options) {
  return ask_all(context, options.graph, options.result,
                 [&](const GraphFile& file) { return tuned_job(context, file, options); });
}

absl::StatusOr<int> watch_command(Context& context, const WatchOptions& options) {
  WL_ASSIGN_OR_RETURN(Job job, context.service.get_job(options.job));
  if (!is_done(job.state) && context.embedded)
    WL_RETURN_IF_ERROR(context.local.start_worker(!options.report.html.empty()));
  const auto on_interrupt = options.cancel_on_interrupt ? OnInterrupt::kEndJob : OnInterrupt::kEndWatch;
  WL_ASSIGN_OR_RETURN(
      job, follow(context, job, {.progress = options.progress, .begun = Clock::now(), .on_interrupt = on_interrupt}));
  return conclude(context, options.job, /*retune=*/false, {.report = options.report}, {{std::move(job), nullptr}});
}

absl::StatusOr<int> get_command(Context& context, const GetOptions& options) {
  const std::string& input = options.graph.file;
  const ResultOptions& to = options.result;
  const bool is_key = may_be_key(input) && !std::filesystem::exists(input);
  if (!is_key)
    return ask_all(context, options.graph, to,
                   [&](const GraphFile& file) { return stored_job(context, file, options.graph.tune); });
  WL_ASSIGN_OR_RETURN(const std::string key, context.service.whole_key(input));
  WL_ASSIGN_OR_RETURN(KernelRecord record, context.service.get_record(key));
  WL_RETURN_IF_ERROR(write_report(to.report.json, record_json(record)));
  if (!to.out.empty()) {
    WL_ASSIGN_OR_RETURN(std::string object, objects_of(context, to.trust)(record));
    WL_RETURN_IF_ERROR(make_folders(to.out));
    WL_RETURN_IF_ERROR(
        write_file(cat(to.out, "/", source_file(record.source)), record.source.prelude + record.source.text));
    WL_RETURN_IF_ERROR(write_file(cat(to.out, "/", object_file(record.source)), object));
    WL_RETURN_IF_ERROR(write_file(to.out + "/record.json", record_json(record)));
  }
  if (to.report.json == "-") return kExitDone;
  std::printf(
      "%s\n  what     %s\n  target   %s, %s\n  plan     %s\n  best     %s (default %s)\n  error    %s of %s allowed\n",
      record.key.c_str(), describe_group(record.graph).c_str(), record.device.target.c_str(),
      record.environment.c_str(), record.plan.c_str(), time_text(median_of(record.samples_ns)).c_str(),
      time_text(median_of(record.default_samples_ns)).c_str(), number_text(record.max_error).c_str(),
      number_text(record.bound).c_str());
  return kExitDone;
}

}  // namespace wl

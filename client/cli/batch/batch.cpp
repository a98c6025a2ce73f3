#include "client/cli/batch/batch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/batch/batch_file.h"
#include "client/cli/batch/request_id.h"
#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/cli/report_table.h"
#include "client/cli/table.h"
#include "client/cli/values.h"
#include "client/program/bucket.h"
#include "client/program/bundle.h"
#include "client/program/files.h"
#include "client/program/json.h"
#include "client/remote/ids.h"
#include "client/remote/report.h"
#include "proto/backoff.h"

namespace wl {
namespace {

using Clock = std::chrono::system_clock;
// For how long a request to create a job is repeated while the coordinator is unreachable.
constexpr auto kPatience = std::chrono::seconds(60);
// Time limit of one call to the coordinator; a call that creates a job returns only when the coordinator has planned
// the job.
constexpr auto kPlanning = std::chrono::seconds(120);
// The largest number of jobs of earlier commands, which ended without a result, that new jobs replace for one graph.
constexpr int kMostAgain = 100;
constexpr auto kFirstRetry = std::chrono::milliseconds(100), kLastRetry = std::chrono::milliseconds(2000);

// The file .unfinished-batch beside the bundles. It has the id of a batch that is not done, and is locked (flock) while
// the batch runs.
class Unfinished {
 public:
  static absl::StatusOr<Unfinished> open(const std::string& folder) {
    WL_RETURN_IF_ERROR(make_folders(folder));
    Unfinished out;
    out.path_ = folder + "/.unfinished-batch";
    out.fd_ = ::open(out.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (out.fd_ < 0) return invalid("cannot write ", out.path_, ": ", std::strerror(errno));
    // On a file system without locks, only the protection against a second batch is missing.
    if (::flock(out.fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return invalid("another `warploom batch` writes to ", folder, "; wait for it, or name another folder as out");
    char id[kIdSize];
    if (::pread(out.fd_, id, sizeof id, 0) == kIdSize) {
      out.id_.assign(id, sizeof id);
      return out;
    }
    // The file has no id yet, because it is new or its batch ended before it created a job.
    out.id_ = new_request_id();
    if (::pwrite(out.fd_, out.id_.data(), kIdSize, 0) != kIdSize || ::fsync(out.fd_) != 0)
      return absl::ResourceExhaustedError(cat("cannot write ", out.path_, ": ", std::strerror(errno)));
    return out;
  }
  Unfinished(Unfinished&& other) noexcept
      : path_(std::move(other.path_)), id_(std::move(other.id_)), fd_(std::exchange(other.fd_, -1)) {}
  Unfinished& operator=(Unfinished&&) = delete;
  ~Unfinished() {
    if (fd_ >= 0) ::close(fd_);
  }

  const std::string& id() const { return id_; }
  // Removes the file when the batch is done, so that the next batch creates new jobs.
  void remove() { ::unlink(path_.c_str()); }

 private:
  static constexpr ssize_t kIdSize = 36;
  Unfinished() = default;
  std::string path_, id_;
  int fd_ = -1;
};

// One size of a run: its graph, and its job.
struct Sized {
  GraphFile file;
  std::optional<Job> job;  // the job of this size; set when the job is done
};
struct Run {
  const BatchRun* asked = nullptr;
  std::vector<Sized> sizes;
  absl::Status status = absl::UnknownError("not begun");
};

class BatchWork {
 public:
  BatchWork(Context& context, const BatchOptions& options, std::string id, std::vector<Run>& runs)
      : context_(context),
        options_(options),
        id_(std::move(id)),
        runs_(runs),
        service_(context.service.limited(kPlanning, stop_.get_token())) {}

  // Performs all runs (a run is a model for one target), `at_once` of them at the same time, each on a thread.
  void run(int at_once) {
    InterruptGuard guard([this] {
      say("stopping; the same command goes on from here (again: stop at once)");
      stop_.request_stop();
    });
    std::vector<std::jthread> threads;
    for (int i = 1; i < at_once; ++i) threads.emplace_back([this] { take(); });
    take();
  }

  bool stopped() const { return stop_.stop_requested(); }

 private:
  void take() {
    for (;;) {
      size_t next = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (next_ == runs_.size() || stopped()) return;
        next = next_++;
      }
      Run& run = runs_[next];
      if (absl::IsUnknown(run.status)) run.status = perform(run);
      if (!stopped()) say(cat(run.asked->name, ": ", run.status.ok() ? outcome(run) : error_line(run.status)));
    }
  }

  absl::Status perform(Run& run) {
    std::vector<TunedProgram> programs;
    for (Sized& size : run.sizes) {
      WL_ASSIGN_OR_RETURN(Job job, job_of(*run.asked, size.file));
      if (job.state == JobState::kCancelled) return absl::CancelledError(cat("job ", job.name, " was cancelled"));
      if (!job.result) return why_no_result(job);
      WL_ASSIGN_OR_RETURN(Program program, program_of(*job.result, size.file));
      programs.push_back({std::move(program), report_json(job, size.file.bind, run.asked->file, /*stable=*/true,
                                                          options_.trust.trust_workers)});
      size.job = std::move(job);
    }
    return write_buckets(run.asked->out, programs);
  }

  // Only one thread at a time makes programs, since --build-locally compiles on this machine.
  absl::StatusOr<Program> program_of(const JobResult& result, const GraphFile& file) {
    const std::scoped_lock lock(building_);
    return fetch_program(context_.service, objects_of(context_, options_.trust), result, file);
  }

  // Creates a job, with retries while the coordinator cannot be reached, and returns it when it is done.
  absl::StatusOr<Job> job_of(const BatchRun& run, const GraphFile& file) {
    TuneOptions options = run.options;
    if (context_.embedded) {
      WL_ASSIGN_OR_RETURN(options.device, context_.local.device_for(options.target, /*must_run=*/true));
      WL_RETURN_IF_ERROR(context_.local.start_worker(/*rates=*/false));
    }
    const auto begun = Clock::now();
    Backoff backoff(kFirstRetry, kLastRetry);
    const std::string size = bind_text(file.bind);
    for (int again = 0;;) {
      absl::StatusOr<Job> job =
          service_.create_job(batch_request_id(id_, run.name, file.text, options, again), file.text, options,
                              size.empty() ? run.name : cat(run.name, " ", size), trace_of_job(options_.job.trace));
      if (absl::IsUnavailable(job.status()) && Clock::now() < begun + kPatience && !stopped()) {
        wait(backoff.next());
        continue;
      }
      WL_RETURN_IF_ERROR(job.status());
      if (job->state == JobState::kSucceeded) return job;
      if (!is_done(job->state)) return wait_for(run, *job, begun);
      // An earlier command created this job, which ended without a result, so the next id asks for a new job.
      if (++again > kMostAgain) return job;
    }
  }

  absl::StatusOr<Job> wait_for(const BatchRun& run, const Job& job, Clock::time_point begun) {
    if (context_.embedded) WL_RETURN_IF_ERROR(end_orphans(context_, job.name));
    say(cat(run.name, ": job ", job.name));
    return await_job(context_, job,
                     {.wait_for_worker_s = options_.job.wait_for_worker_s,
                      .budget_s = run.options.budget_s,
                      .begun = begun,
                      .on_change = [](const Job&) {},
                      .on_lost =
                          [&](bool lost) {
                            say(cat(run.name, lost ? ": the coordinator is unreachable; waiting for it"
                                                   : ": the coordinator is back"));
                          },
                      .say = [&](const std::string& line) { say(cat(run.name, ": ", line)); },
                      .stop = stop_.get_token()});
  }

  static std::string outcome(const Run& run) {
    double before = 0, after = 0;
    bool estimated = false;
    for (const Sized& size : run.sizes) {
      before += size.job->result->default_ns;
      after += size.job->result->best_ns;
      estimated |= size.job->result->default_estimated;
    }
    return cat(time_text(after), ", ", speed_up_text(before, after, estimated));
  }

  void say(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    std::fprintf(stderr, "%s\n", line.c_str());
  }

  void wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    std::condition_variable_any never;
    never.wait_for(lock, stop_.get_token(), time, [] { return false; });
  }

  Context& context_;
  const BatchOptions& options_;
  const std::string id_;
  std::vector<Run>& runs_;
  std::stop_source stop_;
  Service service_;   // calls of this service end when the batch is stopped
  std::mutex mutex_;  // guards next_ and the lines on stderr
  size_t next_ = 0;
  std::mutex building_;  // locked while a thread fetches or compiles a program, so that only one does
};

// Reads the graphs of a run, one for each size, and checks that the run's folder may become a bundle.
absl::Status prepare(Run& run, const Context& context) {
  const BatchRun& asked = *run.asked;
  WL_RETURN_IF_ERROR(may_become_bundle(asked.out));
  for (const Bind& bind : combinations(asked.bind)) {
    WL_ASSIGN_OR_RETURN(GraphFile file,
                        read_graph(asked.file, bind, context.local.panels(asked.options.target, context.embedded), {},
                                   asked.allow_tf32));
    run.sizes.push_back({std::move(file), std::nullopt});
  }
  return absl::OkStatus();
}

// Prepares every run of a batch file. A run that cannot begin gets an error as its status; the other runs are
// performed.
std::vector<Run> prepared(const BatchFile& batch, const Context& context) {
  std::vector<Run> runs;
  for (const BatchRun& asked : batch.runs) {
    Run& run = runs.emplace_back();
    run.asked = &asked;
    if (absl::Status status = prepare(run, context); !status.ok()) run.status = std::move(status);
  }
  return runs;
}

std::string state_of(const Run& run) {
  return run.status.ok()                                                ? "done"
         : absl::IsCancelled(run.status) || absl::IsUnknown(run.status) ? "not done"
                                                                        : "failed";
}

std::string table_of(const std::vector<Run>& runs) {
  Table table({{"model/target"},
               {"size"},
               {"state"},
               {"kernels", true},
               {"default", true},
               {"best", true},
               {"speed-up", true},
               {"trials", true}},
              wants_colour(STDOUT_FILENO));
  for (const Run& run : runs) {
    if (run.sizes.empty()) table.add({run.asked->name, "", state_of(run), "", "", "", "", ""});
    for (const Sized& size : run.sizes) {
      std::vector<std::string> row = {run.asked->name, bind_text(size.file.bind), state_of(run)};
      if (size.job) {
        const JobResult& result = *size.job->result;
        for (std::string cell : {cat(result.kernels_default, " -> ", result.kernels),
                                 default_text(result.default_ns, result.default_estimated), time_text(result.best_ns),
                                 speed_up_text(result.default_ns, result.best_ns, result.default_estimated),
                                 size.job->cached ? "stored" : cat(size.job->progress.trials_done)})
          row.push_back(std::move(cell));
      }
      row.resize(8);
      table.add(std::move(row));
    }
  }
  return table.text();
}

Json json_of(const std::vector<Run>& runs, bool trust_workers) {
  Json json = {{"format", kReportFormat}, {"runs", Json::array()}};
  for (const Run& run : runs) {
    Json row = {{"name", run.asked->name},
                {"file", run.asked->file},
                {"target", run.asked->options.target},
                {"state", state_of(run)},
                {"error", std::string(run.status.message())},
                {"bundle", run.status.ok() ? run.asked->out : ""},
                {"sizes", Json::array()}};
    for (const Sized& size : run.sizes) {
      Json report;
      if (size.job)
        report = Json::parse(report_json(*size.job, size.file.bind, run.asked->file, /*stable=*/false, trust_workers));
      row["sizes"].push_back({{"bind", Json(size.file.bind)}, {"report", std::move(report)}});
    }
    json["runs"].push_back(std::move(row));
  }
  return json;
}

}  // namespace

absl::StatusOr<int> batch_command(Context& context, const BatchOptions& options) {
  WL_ASSIGN_OR_RETURN(const std::string text, read_file(options.file, kMostSettings));
  WL_ASSIGN_OR_RETURN(const BatchFile file, parse_batch(text, options.file));
  std::vector<Run> runs = prepared(file, context);
  WL_ASSIGN_OR_RETURN(Unfinished unfinished, Unfinished::open(file.out));
  BatchWork work(context, options, unfinished.id(), runs);
  // In embedded mode jobs run one after the other, since this machine measures for one job at a time.
  work.run(context.embedded ? 1 : std::min(options.jobs_at_once, static_cast<int>(runs.size())));

  WL_RETURN_IF_ERROR(write_report(options.json, text_of(json_of(runs, options.trust.trust_workers))));
  const auto failed = std::find_if(runs.begin(), runs.end(),
                                   [](const Run& run) { return !run.status.ok() && !absl::IsUnknown(run.status); });
  const auto done = std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.status.ok(); });
  if (done == static_cast<int64_t>(runs.size())) unfinished.remove();
  if (options.json != "-") {
    std::fputs(table_of(runs).c_str(), stdout);
    std::printf("%ld of %zu bundles are in %s\n", static_cast<long>(done), runs.size(), file.out.c_str());
  }
  if (work.stopped()) return kExitInterrupted;
  if (failed == runs.end()) return kExitDone;
  for (const Run& run : runs)
    if (state_of(run) == "failed")
      std::fprintf(stderr, "%s: %s\n", run.asked->name.c_str(), error_line(run.status).c_str());
  std::fprintf(stderr, "the same command asks again for what is not done, and for nothing else\n");
  return exit_code_of(failed->status);
}

}  // namespace wl

// Tries kernels that replaced others in the programs that run them (docs/design/service.md#kernels-tried-in-place).
#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "server/engine/devices.h"
#include "server/engine/impl.h"

namespace wl {
namespace {

constexpr int kMostWaiting = 64;  // number of replacements, the oldest, among which one is chosen
// Number of programs in which a kernel is tried, and number of those that are looked at to find them.
constexpr size_t kMostPrograms = 3;
constexpr int kMostLookedAt = 16;
constexpr int64_t kWaitsMs = kUseDays * 86'400'000;  // a kernel that no worker tried for a week is not tried

struct Found {
  std::string team;  // team of the programs
  InPlaceTrial trial;
};

// Whether a kernel that replaced a record can be tried in the program of a job.
bool suits(const JobRow& job, const KernelRecord& after, const std::string& team) {
  return job.result && job.device && job.device->fingerprint() == after.device.fingerprint() &&
         environment_of(*job.device) == after.environment && (team.empty() || job.team == team);
}

absl::StatusOr<ProgramBatch> program_of(Store& store, const Compiler& compiler, const JobRow& job,
                                        const KernelRecord& before, const KernelRecord& after, Work* work) {
  ProgramOfJob program;
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(job.graph));
  WL_ASSIGN_OR_RETURN(program.graph, compiler.laid_out(graph, job.options.cover, work));
  WL_ASSIGN_OR_RETURN(program.machine, machine_of(*job.device));
  program.result = *job.result;
  program.cold = job.options.cold;
  for (const GroupResult& group : program.result.groups) {
    WL_ASSIGN_OR_RETURN(auto record, store.record_by_key(group.key, after.environment, {.team = job.team}));
    if (record) program.records.emplace(group.key, std::move(record->record));
  }
  program.records.insert_or_assign(after.key, after);
  return both_ways(program, before);
}

// Returns the trial of a replacement, with the programs in which it can be tried. A program that cannot be run is left
// out.
absl::StatusOr<Found> trial_of(Store& store, const Compiler& compiler, const ReplacedRow& row,
                               const KernelRecord& before, const KernelRecord& after, Work* work) {
  Found found{.team = row.team, .trial = {.row = row, .device = {}, .before = before, .programs = {}, .timed = {}}};
  WL_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, store.programs_with(row.key, kMostLookedAt));
  for (const int64_t id : ids) {
    if (found.trial.programs.size() == kMostPrograms) break;
    WL_ASSIGN_OR_RETURN(const std::optional<JobRow> job, store.job(id));
    if (!job || !suits(*job, after, row.team)) continue;
    // Programs of one team only, since their batches go to that team's workers.
    if (!found.trial.programs.empty() && job->team != found.team) continue;
    absl::StatusOr<ProgramBatch> batch = program_of(store, compiler, *job, before, after, work);
    if (absl::IsCancelled(batch.status())) return batch.status();
    if (!batch.ok()) continue;
    found.team = job->team;
    found.trial.device = *job->device;
    // Whoever sees the record may read the name.
    const std::string name = job->team != row.team ? "a program of a team"
                             : job->label.empty()  ? job_name(id)
                                                   : job->label;
    found.trial.programs.emplace_back(name, *std::move(batch));
  }
  return found;
}

}  // namespace

// Makes a job that tries a kernel in place. nullopt: none waits for it whose device is free.
absl::StatusOr<std::optional<int64_t>> Engine::Impl::try_in_place(const std::vector<Device>& in_use) {
  WL_ASSIGN_OR_RETURN(const std::vector<ReplacedRow> waiting, store->waiting_replacements(kMostWaiting));
  for (const ReplacedRow& row : waiting) {
    WL_ASSIGN_OR_RETURN(const auto before, store->record_by_digest(row.before));
    WL_ASSIGN_OR_RETURN(const auto after, store->record_by_digest(row.after));
    const auto leave = [&](const std::string& why) {
      ReplacedRow end = row;
      end.outcome = TriedInPlace::kNotTried;
      end.message = why;
      return store->end_replacement(end);
    };
    if (!before || !after) {
      WL_RETURN_IF_ERROR(leave("the replaced record is no longer in the store"));
      continue;
    }
    if (unix_ms_now() - row.made_ms > kWaitsMs) {
      WL_RETURN_IF_ERROR(leave("no worker had time for it within a week"));
      continue;
    }
    if (is_in_use(in_use, after->record.device)) continue;
    Work work(waiting_for({}, std::nullopt, loop, {}));
    WL_ASSIGN_OR_RETURN(Found found, trial_of(*store, *compiler, row, before->record, after->record, &work));
    if (found.trial.programs.empty()) {
      WL_RETURN_IF_ERROR(leave("no program that runs it can be made from the store"));
      continue;
    }
    if (workers.serving(found.trial.device, found.team) == 0) continue;
    TuneOptions asked;
    asked.target = found.trial.device.target;
    asked.device = found.trial.device;
    asked.background = true;
    const JobRow job =
        own_job("in-place", found.team, cat("in place: ", describe_group(after->record.graph)), std::move(asked));
    WL_ASSIGN_OR_RETURN(JobRow made, put_own(job));
    loop.post([this, made, trial = std::make_shared<InPlaceTrial>(std::move(found.trial))]() mutable {
      jobs.try_in_place(std::move(made), std::move(trial));
    });
    return made.id;
  }
  return std::nullopt;
}

void Jobs::try_in_place(JobRow row, std::shared_ptr<InPlaceTrial> trial) {
  const int64_t id = row.id;
  ActiveJob& job = jobs_[id];
  job.row = std::move(row);
  job.begun = Clock::now();
  job.plan.emplace().device = trial->device;
  job.in_place = std::move(trial);
  advance(id);
}

// Times the next program, or ends the job once all were timed.
void Jobs::advance_in_place(ActiveJob& job) {
  InPlaceTrial& trial = *job.in_place;
  if (job.row.cancelling) {
    return finish(job, JobState::kCancelled, end_in_place(job, {.message = "the job was cancelled"}));
  }
  while (trial.timed.size() < trial.programs.size()) {
    const auto& [name, program] = trial.programs[trial.timed.size()];
    const absl::StatusOr<const Race*> race = races_->join(job.row, program.batch, program.floor_ns);
    if (!race.ok()) return finish(job, JobState::kFailed, race.status());
    if (!(*race)->trials) return publish(job);
    trial.timed.push_back({name, *(*race)->trials});
    races_->leave(job.row.id);
  }
  const absl::Status ended = end_in_place(job, judge_in_place(trial.timed));
  finish(job, ended.ok() ? JobState::kSucceeded : JobState::kFailed, ended);
}

absl::Status Jobs::end_in_place(const ActiveJob& job, const InPlaceVerdict& verdict) {
  const InPlaceTrial& trial = *job.in_place;
  ReplacedRow end = trial.row;
  end.outcome = !verdict.tried   ? TriedInPlace::kNotTried
                : verdict.slower ? TriedInPlace::kTakenBack
                                 : TriedInPlace::kKept;
  end.before_ns = verdict.before_ns;
  end.after_ns = verdict.after_ns;
  end.calls = verdict.calls;
  end.message = verdict.message;
  const bool back = end.outcome == TriedInPlace::kTakenBack;
  if (back && !options_.is_ours(trial.before))
    return absl::FailedPreconditionError(cat("the record ", trial.before.digest,
                                             " should be served again, but its signature is not this coordinator's"));
  WL_RETURN_IF_ERROR(store_->end_replacement(end, back ? &trial.before : nullptr));
  LogFields fields = fields_of(job.row);
  fields.push_back({"key", end.key});
  fields.push_back({"outcome", std::string(kInPlaceNames[static_cast<int>(end.outcome)])});
  fields.push_back({"seen", end.message});
  log_line(spdlog::level::info, "kernel tried in place", fields);
  if (back && options_.promoted) options_.promoted(end.key);
  return absl::OkStatus();
}

}  // namespace wl

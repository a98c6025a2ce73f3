// Conversion of the messages between clients and the coordinator.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_join.h"
#include "compiler/base/libraries.h"
#include "compiler/base/names.h"
#include "proto/limits.h"
#include "proto/wire.h"
#include "proto/wire_internal.h"

namespace wl {
namespace {

constexpr v1::JobState kStates[] = {v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING,   v1::JOB_STATE_SUCCEEDED,
                                    v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED, v1::JOB_STATE_NOT_CACHED};
static_assert(std::size(kStates) == kJobStateCount);

}  // namespace

v1::TuneOptions to_proto(const TuneOptions& options) {
  v1::TuneOptions out;
  out.set_target(options.target);
  out.set_trials(options.trials);
  out.set_budget_s(options.budget_s);
  out.set_seed(options.seed);
  out.set_strategy(options.strategy);
  out.set_cover(options.cover);
  out.set_effort(options.effort);
  out.set_cold(options.cold);
  out.set_require_cached(options.require_cached);
  out.set_retune(options.retune);
  out.set_at_once(options.at_once);
  out.set_kernels_alone(options.kernels_alone);
  out.set_libraries(options.libraries);
  out.set_background(options.background);
  if (options.device) *out.mutable_device() = to_proto(*options.device);
  return out;
}

absl::StatusOr<TuneOptions> convert(const v1::TuneOptions& in) {
  TuneOptions out;
  if (!in.target().empty()) out.target = in.target();
  out.trials = in.trials();
  out.budget_s = in.budget_s();
  out.seed = in.seed();
  if (!in.strategy().empty()) out.strategy = in.strategy();
  if (!in.cover().empty()) out.cover = in.cover();
  if (!in.effort().empty()) out.effort = in.effort();
  if (effort_named(out.effort) == nullptr)
    return invalid("effort: expected one of ", absl::StrJoin(effort_names(), ", "), ", found \"", out.effort, "\"");
  out.cold = in.cold();
  out.require_cached = in.require_cached();
  out.retune = in.retune();
  if (!effort_of(out).compares && (out.trials > 1 || out.retune))
    return invalid("effort: ", out.effort, " searches nothing; leave out ", out.retune ? "retune" : "trials",
                   ", or ask for another effort");
  out.at_once = in.at_once();
  out.kernels_alone = in.kernels_alone();
  out.background = in.background();
  if (!in.libraries().empty()) out.libraries = in.libraries();
  if (out.libraries != kNoLibraries && library_named(out.libraries) == nullptr)
    return invalid("libraries: expected one of ", absl::StrJoin(library_choices(), ", "), ", found \"", out.libraries,
                   "\"");
  if (out.retune && out.require_cached)
    return invalid("retune and require_cached exclude each other: give one of them");
  if (in.has_device()) {
    WL_ASSIGN_OR_RETURN(out.device, convert(in.device()));
  }
  return out;
}

v1::Progress to_proto(const JobProgress& progress) {
  v1::Progress out;
  for (const GroupProgress& group : progress.groups) {
    v1::Progress::Group* item = out.add_groups();
    item->set_key(group.key);
    item->set_name(fitted(group.name, TextKind::kName, kMostName));
    item->set_trials_done(group.trials_done);
    item->set_trials_total(group.trials_total);
    item->set_count(group.count);
    item->set_best_ns(group.best_ns);
    item->set_default_ns(group.default_ns);
    counts_to_wire(group.outcomes, item->mutable_outcomes());
    item->set_done(group.done);
    item->set_cached(group.cached);
    item->set_is_default(group.is_default);
  }
  out.set_trials_done(progress.trials_done);
  out.set_trials_total(progress.trials_total);
  out.set_elapsed_s(progress.elapsed_s);
  out.set_left_s(progress.left_s);
  out.set_workers(progress.workers);
  out.set_phase(progress.phase);
  return out;
}

absl::StatusOr<JobProgress> convert(const v1::Progress& in) {
  JobProgress out;
  for (const v1::Progress::Group& item : in.groups()) {
    GroupProgress group;
    group.key = item.key();
    group.name = item.name();
    group.trials_done = item.trials_done();
    group.trials_total = item.trials_total();
    group.count = item.count();
    group.best_ns = item.best_ns();
    group.default_ns = item.default_ns();
    WL_ASSIGN_OR_RETURN(group.outcomes, counts_from_wire(item.outcomes()));
    group.done = item.done();
    group.cached = item.cached();
    group.is_default = item.is_default();
    out.groups.push_back(std::move(group));
  }
  out.trials_done = in.trials_done();
  out.trials_total = in.trials_total();
  out.elapsed_s = in.elapsed_s();
  out.left_s = in.left_s();
  out.workers = in.workers();
  out.phase = in.phase();
  return out;
}

v1::Job to_proto(const Job& job) {
  v1::Job out;
  out.set_name(job.name);
  out.set_state(kStates[static_cast<int>(job.state)]);
  out.set_label(fitted(job.label, TextKind::kName, kMostName));
  *out.mutable_options() = to_proto(job.options);
  out.set_cached(job.cached);
  out.set_version(job.version);
  *out.mutable_progress() = to_proto(job.progress);
  if (job.result) *out.mutable_result() = to_proto(*job.result);
  out.set_error_code(static_cast<int>(job.error.code()));
  out.set_error_message(message_for_wire(std::string(job.error.message())));
  out.set_created_unix_ms(job.created_unix_ms);
  out.set_finished_unix_ms(job.finished_unix_ms);
  if (job.device) *out.mutable_device() = to_proto(*job.device);
  out.set_cancelling(job.cancelling);
  out.set_trace(job.trace);
  return out;
}

absl::StatusOr<Job> convert(const v1::Job& in) {
  Job out;
  out.name = in.name();
  const v1::JobState* state = std::find(std::begin(kStates), std::end(kStates), in.state());
  if (state == std::end(kStates))
    return invalid("message Job \"", in.name(), "\": state ", static_cast<int>(in.state()));
  out.state = static_cast<JobState>(state - kStates);
  out.label = in.label();
  WL_ASSIGN_OR_RETURN(out.options, convert(in.options()));
  out.cached = in.cached();
  out.version = in.version();
  WL_ASSIGN_OR_RETURN(out.progress, convert(in.progress()));
  if (in.has_result()) {
    WL_ASSIGN_OR_RETURN(out.result, convert(in.result()));
  }
  if (in.error_code() != 0)
    out.error = absl::Status(static_cast<absl::StatusCode>(in.error_code()), in.error_message());
  out.created_unix_ms = in.created_unix_ms();
  out.finished_unix_ms = in.finished_unix_ms();
  if (in.has_device()) {
    WL_ASSIGN_OR_RETURN(out.device, convert(in.device()));
  }
  out.cancelling = in.cancelling();
  out.trace = in.trace();
  return out;
}

}  // namespace wl

// Times a job's cover as a whole against other covers before it becomes the answer. The times of single kernels decided
// which cover the job has, and which groups of the cover were replaced by their parts (the smaller groups of a less
// fused cover). Two such times may differ by no more than noise, and may be measured minutes apart on a machine whose
// speed changes. The contenders are the job's cover and simpler covers, each once with groups replaced by their parts
// and once with all groups kept. The kernels of simpler covers first get only a share of the trials; they get the rest
// if their cover is nearly as fast as the fastest. All decisions follow from the graph and the stored trials
// (docs/design/covers.md#whole-covers).
#include <algorithm>
#include <utility>

#include "server/engine/jobs.h"

namespace wl {
namespace {

// Suffix of the name of a cover in which no group is replaced by its parts.
constexpr std::string_view kUnsplit = "/unsplit";

// Adds to a job's plan those groups of another cover that need a search. The plan then lists these groups with their
// searches, although none of its launches runs them.
void add_searched(JobPlan& plan, const std::vector<PlannedGroup>& groups) {
  for (const PlannedGroup& group : groups) {
    const auto is_it = [&](const PlannedGroup& known) { return known.key == group.key; };
    if (!group.searched() || std::any_of(plan.groups.begin(), plan.groups.end(), is_it)) continue;
    plan.groups.push_back(group);
    plan.groups.back().fused_count = plan.groups.back().part_count = 0;
    plan.groups.back().between_count = 1;
  }
}

// Adds a cover twice: once with groups replaced by their parts where these are faster, and once with all its groups
// kept. A cover is left out if one of its groups has no correct kernel.
void add_covers(const std::string& name, const JobPlan& plan, const Records& records, std::vector<WholeCover>* covers) {
  const auto add = [&](const std::string& as, JobPlan made) {
    if (auto result = assemble(made, records, {}); result.ok())
      covers->push_back({as, std::move(made), *std::move(result)});
  };
  add(name, plan);
  JobPlan kept = plan;
  kept.keeps_groups = true;
  add(cat(name, kUnsplit), std::move(kept));
}

}  // namespace

void Jobs::on_race(int64_t id) {
  advance(id);
}

// Returns whether the job's cover is decided. False: the job waits for plans, for searches, or for a race (the batch
// that times whole covers).
absl::StatusOr<bool> Jobs::decide_whole(ActiveJob& job) {
  const TuneOptions& asked = job.row.options;
  if (job.whole.decided) return true;
  std::vector<std::string> names = compiler_->simpler(asked.cover);
  // On GPUs no covers are compared, since workers can time several kernels in sequence (chains) only on CPUs.
  job.whole.decided = asked.kernels_alone || names.empty() || job.plan->machine.target->is_gpu();
  if (job.whole.decided) return true;
  if (!job.whole.simpler) {
    plan_simpler(job, std::move(names));
    return false;
  }
  std::vector<WholeCover> covers;
  add_covers(asked.cover, *job.plan, job.records, &covers);
  for (const auto& [name, plan] : *job.whole.simpler) add_covers(name, plan, job.records, &covers);
  drop_equal(covers);
  // If only the job's own cover is left, it is timed for the report alone, and only if it has at least two kernels:
  // the time of several kernels in sequence is not the sum of their times.
  job.whole.decided = covers.empty() || covers.front().name != asked.cover ||
                      (covers.size() == 1 && covers.front().result.steps.size() < 2);
  if (job.whole.decided) return true;
  WL_ASSIGN_OR_RETURN(const Race* race, races_->join(job.row, chains_of(covers, job.records, asked), floor_of(covers)));
  if (!race->trials) return false;
  std::vector<TimedCover> timed = decide(covers, *race->trials);
  races_->leave(job.row.id);
  WL_RETURN_IF_ERROR(need_contenders(job, covers, timed));
  if (busy(job)) return false;
  const auto chosen = std::find_if(timed.begin(), timed.end(), [](const TimedCover& cover) { return cover.chosen; });
  JobPlan plan = std::move(covers[static_cast<size_t>(chosen - timed.begin())].plan);
  add_searched(plan, job.plan->groups);
  job.plan = std::move(plan);
  job.whole.timed = std::move(timed);
  job.whole.decided = true;
  return true;
}

void Jobs::plan_simpler(ActiveJob& job, std::vector<std::string> names) {
  if (std::exchange(job.whole.planning, true)) return;
  plan_beside(job, [this, row = job.row, names = std::move(names), waiting = waiting_for_job(job)] {
    Work work(waiting);
    auto plans = std::make_shared<absl::StatusOr<Simpler>>(Simpler());
    for (const std::string& name : names) {
      TuneOptions options = row.options;
      options.cover = name;
      auto plan = timed_plan(row, options, *compiler_, {}, &work);
      if (plan.ok()) {
        (*plans)->emplace_back(name, *std::move(plan));
      } else {
        *plans = plan.status();
        break;
      }
    }
    loop_->post([this, id = row.id, plans] { take_simpler(id, std::move(*plans)); });
  });
}

void Jobs::take_simpler(int64_t job_id, absl::StatusOr<Simpler> simpler) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end() || was_left(simpler.status())) return;
  ActiveJob& job = found->second;
  // If the job's time is over before simpler covers are planned, the job keeps its own cover.
  job.stopping |= absl::IsDeadlineExceeded(simpler.status());
  if (job.row.cancelling || job.stopping) return advance(job_id);
  if (!simpler.ok()) return finish(job, JobState::kFailed, simpler.status());
  for (const auto& [name, plan] : *simpler) {
    for (const PlannedGroup& group : plan.groups) {
      const absl::Status status = need(job, group, group.searched() ? first_trials(job.row.options.trials) : 1);
      if (!status.ok()) return finish(job, JobState::kFailed, status);
    }
    add_searched(*job.plan, plan.groups);
  }
  job.whole.simpler = *std::move(simpler);
  advance(job_id);
}

// Asks for more trials of the kernels of those simpler covers that are nearly as fast as the fastest cover: as many as
// the kernels of the job's own cover get.
absl::Status Jobs::need_contenders(ActiveJob& job, const std::vector<WholeCover>& covers,
                                   const std::vector<TimedCover>& timed) {
  for (size_t i : contenders(timed)) {
    for (const GroupResult& used : covers[i].result.groups) {
      if (job.needed[used.key] >= job.row.options.trials) continue;
      const std::vector<PlannedGroup>& groups = covers[i].plan.groups;
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.key == used.key; });
      WL_RETURN_IF_ERROR(need(job, *group, job.row.options.trials));
    }
  }
  return absl::OkStatus();
}

}  // namespace wl

// Times a job's cover as a whole against other covers before it becomes the answer. The times of single kernels decided
// which cover the job has, and which groups of the cover were replaced by their parts (the smaller groups of a less
// fused cover). Two such times may differ by no more than noise, and may be measured minutes apart on a machine whose
// speed changes. The contenders are the job's cover and simpler covers, each once with groups replaced by their parts
// and once with all groups kept. A simpler cover is left out if the model, or the times of its kernels with default
// schedules, say that it is clearly slower. The kernels of the others first get only a share of the trials; they get
// the rest if their cover is nearly as fast as the fastest. All decisions follow from the graph and the stored trials
// (docs/design/covers.md#whole-covers). A job that does not search times no cover as a whole: it has only the choice
// between the layouts of values, by the times of default schedules.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/engine/jobs.h"

namespace wl {
namespace {

// A cover is searched if its kernels with default schedules take at most this factor of the time of those of the
// fastest cover: a search makes the kernels of covers faster by factors that differ.
constexpr double kMayWin = 1.1;
// A job that does not search takes another cover than its own if the kernels of that cover take at most this factor of
// the time of its own: sums of kernels' times differ from times of whole programs.
constexpr double kClearlyFaster = 0.95;
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

// Returns the entry of a cover that is not searched, and why.
TimedCover left_out(const std::string& name, const JobPlan& plan, std::string why) {
  TimedCover out;
  out.name = name;
  out.kernels = static_cast<int64_t>(plan.levels[0].launches.size());
  for (const PlannedLaunch& launch : plan.levels[0].launches) out.bytes += plan.groups[launch.group].bytes;
  out.why = cat("not searched: ", why);
  return out;
}

// Returns the sum of the times of a cover's launches with default schedules; 0 if one of them has no record.
double default_ns(const JobPlan& plan, const Records& records) {
  double sum = 0;
  for (const PlannedLaunch& launch : plan.levels[0].launches) {
    const auto record = records.find(plan.groups[launch.group].key);
    if (record == records.end()) return 0;
    sum += undisturbed_ns(record->second.default_samples_ns);
  }
  return sum;
}

}  // namespace

void Jobs::on_race(int64_t id) {
  advance(id);
}

// Whether the job keeps its own cover. On GPUs no covers are compared, since workers can time several kernels in
// sequence (chains) only on CPUs.
bool Jobs::never_timed_whole(const ActiveJob& job) const {
  const TuneOptions& asked = job.row.options;
  return asked.kernels_alone || job.plan->machine.target->is_gpu() ||
         compiler_->simpler(asked.cover, !effort_of(asked).compares).empty();
}

// Returns whether the job's cover is decided. False: the job waits for plans, for searches, or for a race (the batch
// that times whole covers).
absl::StatusOr<bool> Jobs::decide_whole(ActiveJob& job) {
  if (job.whole.decided) return true;
  job.whole.decided = never_timed_whole(job);
  if (job.whole.decided) return true;
  const bool compares = effort_of(job.row.options).compares;
  if (!job.whole.simpler) {
    plan_simpler(job, compiler_->simpler(job.row.options.cover, !compares));
    return false;
  }
  if (!compares) {
    choose_by_kernels(job);
    return job.whole.decided = true;
  }
  if (!std::exchange(job.whole.weighed, true)) {
    WL_RETURN_IF_ERROR(weigh_covers(job));
    if (busy(job)) return false;
  }
  WL_ASSIGN_OR_RETURN(job.whole.decided, race_covers(job));
  return job.whole.decided;
}

// Takes another cover in place of the job's own if its kernels are clearly faster.
void Jobs::choose_by_kernels(ActiveJob& job) {
  if (job.whole.simpler->empty()) return;
  std::vector<WholeCover> covers;
  add_covers(job.row.options.cover, *job.plan, job.records, &covers);
  if (covers.empty()) return;
  const double own = kernels_ns(covers[0].result);
  for (const auto& [name, plan] : *job.whole.simpler) add_covers(name, plan, job.records, &covers);
  const auto best = std::min_element(covers.begin(), covers.end(), [](const WholeCover& a, const WholeCover& b) {
    return kernels_ns(a.result) < kernels_ns(b.result);
  });
  if (best == covers.begin() || kernels_ns(best->result) > kClearlyFaster * own) return;
  add_searched(best->plan, job.plan->groups);
  job.plan = std::move(best->plan);
}

// Times the job's cover and the simpler covers that are left, and chooses one. Returns false if the job waits.
absl::StatusOr<bool> Jobs::race_covers(ActiveJob& job) {
  const TuneOptions& asked = job.row.options;
  std::vector<WholeCover> covers;
  add_covers(asked.cover, *job.plan, job.records, &covers);
  for (const auto& [name, plan] : *job.whole.simpler) add_covers(name, plan, job.records, &covers);
  drop_equal(covers);
  // If only the job's own cover is left, it is timed for the report alone, and only if it has at least two kernels:
  // the time of several kernels in sequence is not the sum of their times.
  if (covers.empty() || covers.front().name != asked.cover ||
      (covers.size() == 1 && covers.front().result.steps.size() < 2))
    return true;
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
  job.whole.timed.insert(job.whole.timed.end(), job.whole.left_out.begin(), job.whole.left_out.end());
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
  const double own = modelled_ns(*job.plan), most = effort_of(job.row.options).compares ? kModelErrs : 1;
  std::erase_if(*simpler, [&](const auto& cover) {
    const double times = own > 0 ? modelled_ns(cover.second) / own : 0;
    if (times > most)
      job.whole.left_out.push_back(
          left_out(cover.first, cover.second, absl::StrFormat("modelled at %.2f times the job's cover", times)));
    return times > most;
  });
  job.whole.simpler = *std::move(simpler);
  if (absl::Status status = need_simpler(job, 1); !status.ok())
    return finish(job, JobState::kFailed, std::move(status));
  advance(job_id);
}

// Leaves out the simpler covers whose kernels with default schedules are clearly slower than those of the fastest
// cover, and asks for a share of the trials for the kernels of the others.
absl::Status Jobs::weigh_covers(ActiveJob& job) {
  double least = default_ns(*job.plan, job.records);
  for (const auto& [name, plan] : *job.whole.simpler)
    if (const double ns = default_ns(plan, job.records); ns > 0) least = least > 0 ? std::min(least, ns) : ns;
  std::erase_if(*job.whole.simpler, [&](const auto& cover) {
    const double ns = default_ns(cover.second, job.records);
    if (ns > 0 && ns <= kMayWin * least) return false;
    job.whole.left_out.push_back(
        left_out(cover.first, cover.second,
                 ns > 0 ? absl::StrFormat("default schedules take %.2f times the least time of a cover", ns / least)
                        : "no correct kernel was found for one of its groups"));
    return true;
  });
  return need_simpler(job, first_trials(job.row.options.trials));
}

// Asks for trials of the kernels of the simpler covers.
absl::Status Jobs::need_simpler(ActiveJob& job, int64_t trials) {
  for (const auto& [name, plan] : *job.whole.simpler) {
    for (const PlannedGroup& group : plan.groups)
      if (group.fused_count > 0) WL_RETURN_IF_ERROR(need(job, group, trials));
    add_searched(*job.plan, plan.groups);
  }
  return absl::OkStatus();
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

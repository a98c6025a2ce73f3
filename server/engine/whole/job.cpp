// Times a job's cover as a whole against other covers before it becomes the answer. The times of single kernels decided
// which cover the job has, and which groups of the cover were replaced by their parts (the smaller groups of a less
// fused cover). Two such times may differ by no more than noise, and may be measured minutes apart on a machine whose
// speed changes. The contenders are the job's cover and simpler covers, each once with groups replaced by their parts
// and once with all groups kept. A simpler cover is left out if the model says that it is clearly slower. The others
// are timed with default schedules, and only the fastest and those close to it are searched. In jobs that search their
// own cover first, the kernels of simpler covers get a share of the trials, and the rest if their cover is nearly as
// fast. All decisions follow from the graph and the stored trials (docs/design/covers.md#whole-covers).
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/engine/jobs.h"

namespace wl {
namespace {

// A cover is searched if, with default schedules, it takes at most this factor of the time of the fastest: a search
// makes the kernels of covers faster by factors that differ.
constexpr double kMayWin = 1.1;
// Suffix of the name of a cover in which no group is replaced by its parts.
constexpr char kUnsplit[] = "/unsplit";

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

// Returns the name of the cover to which a timed cover belongs, whether its groups are replaced by their parts or not.
std::string cover_of(const TimedCover& timed) {
  return std::string(absl::StripSuffix(timed.name, kUnsplit));
}

// Returns the entry of a cover that is not searched, since the model puts it at `times` the time of the job's cover.
TimedCover modelled_slower(const std::string& name, const JobPlan& plan, double times) {
  TimedCover out;
  out.name = name;
  out.kernels = static_cast<int64_t>(plan.levels[0].launches.size());
  for (const PlannedLaunch& launch : plan.levels[0].launches) out.bytes += plan.groups[launch.group].bytes;
  out.why = absl::StrFormat("not searched: modelled at %.2f times the time of the job's cover", times);
  return out;
}

}  // namespace

void Jobs::on_race(int64_t id) {
  advance(id);
}

// Whether the job keeps its own cover. On GPUs no covers are compared, since workers can time several kernels in
// sequence (chains) only on CPUs.
bool Jobs::never_timed_whole(const ActiveJob& job) const {
  const TuneOptions& asked = job.row.options;
  return asked.kernels_alone || !effort_of(asked).compares || job.plan->machine.target->is_gpu() ||
         compiler_->simpler(asked.cover).empty();
}

// Whether the job's covers are timed with default schedules before any is searched, so that only those that may be the
// answer are. A job with a budget searches its own cover at once, since it may have no time for the others.
bool Jobs::races_first(const ActiveJob& job) const {
  const TuneOptions& asked = job.row.options;
  return asked.trials > 1 && asked.budget_s <= 0 && !never_timed_whole(job) && !chooses_again(asked, *compiler_);
}

int64_t Jobs::trials_now(const ActiveJob& job) const {
  return races_first(job) && !job.whole.raced ? 1 : job.row.options.trials;
}

// Returns whether the job's cover is decided. False: the job waits for plans, for searches, or for a race (the batch
// that times whole covers).
absl::StatusOr<bool> Jobs::decide_whole(ActiveJob& job) {
  if (job.whole.decided) return true;
  WL_ASSIGN_OR_RETURN(const bool compared, compare_whole(job));
  if (!compared) return false;
  std::vector<TimedCover>& timed = job.whole.timed;
  if (!races_first(job) || job.whole.raced) {
    if (!timed.empty()) timed.insert(timed.end(), job.whole.left_out.begin(), job.whole.left_out.end());
    job.whole.decided = true;
    return true;
  }
  // The covers were compared by their default schedules. Those that are left are searched, and compared again.
  job.whole.raced = true;
  WL_RETURN_IF_ERROR(need_wanted(job));
  if (job.whole.covers) WL_RETURN_IF_ERROR(need_covers(job, job.row.options.trials));
  if (!busy(job)) loop_->post([this, id = job.row.id] { advance(id); });
  return false;
}

// Times the job's covers and chooses one. Returns false if the job waits.
absl::StatusOr<bool> Jobs::compare_whole(ActiveJob& job) {
  const TuneOptions& asked = job.row.options;
  if (never_timed_whole(job)) return true;
  if (!job.whole.covers) {
    plan_simpler(job, compiler_->simpler(asked.cover));
    return false;
  }
  std::vector<WholeCover> covers;
  for (const auto& [name, plan] : *job.whole.covers) add_covers(name, plan, job.records, &covers);
  drop_equal(covers);
  // If only one cover is left, it is timed for the report alone, and only if it has at least two kernels: the time of
  // several kernels in sequence is not the sum of their times.
  if (covers.empty() || (covers.front().name != asked.cover && !job.whole.raced) ||
      (covers.size() == 1 && covers.front().result.steps.size() < 2))
    return true;
  WL_ASSIGN_OR_RETURN(const Race* race, races_->join(job.row, chains_of(covers, job.records, asked), floor_of(covers)));
  if (!race->trials) return false;
  std::vector<TimedCover> timed = decide(covers, *race->trials);
  races_->leave(job.row.id);
  if (trials_now(job) == asked.trials) {
    WL_RETURN_IF_ERROR(need_contenders(job, covers, timed));
    if (busy(job)) return false;
  }
  const auto chosen = std::find_if(timed.begin(), timed.end(), [](const TimedCover& cover) { return cover.chosen; });
  JobPlan plan = std::move(covers[static_cast<size_t>(chosen - timed.begin())].plan);
  if (trials_now(job) < asked.trials) keep_contenders(job, timed);
  add_searched(plan, job.plan->groups);
  job.plan = std::move(plan);
  job.whole.timed = std::move(timed);
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
  const double own = modelled_ns(*job.plan);
  job.whole.covers.emplace().emplace_back(job.row.options.cover, *job.plan);
  for (auto& [name, plan] : *simpler) {
    const double ns = modelled_ns(plan);
    if (ns > kModelErrs * own)
      job.whole.left_out.push_back(modelled_slower(name, plan, ns / own));
    else
      job.whole.covers->emplace_back(std::move(name), std::move(plan));
  }
  const int64_t trials = trials_now(job) == 1 ? 1 : first_trials(job.row.options.trials);
  if (absl::Status status = need_covers(job, trials); !status.ok())
    return finish(job, JobState::kFailed, std::move(status));
  advance(job_id);
}

// Asks for trials of the kernels of all covers that are compared.
absl::Status Jobs::need_covers(ActiveJob& job, int64_t trials) {
  for (const auto& [name, plan] : *job.whole.covers) {
    for (const PlannedGroup& group : plan.groups)
      if (group.fused_count > 0) WL_RETURN_IF_ERROR(need(job, group, trials));
    add_searched(*job.plan, plan.groups);
  }
  return absl::OkStatus();
}

// Leaves out the covers that the race with default schedules has shown to be clearly slower than the fastest, and those
// that failed or run the same kernels as another. `timed`: the race's result, of which the entries of covers that are
// left out move to job.whole.left_out.
void Jobs::keep_contenders(ActiveJob& job, std::vector<TimedCover>& timed) {
  std::map<std::string, double> least;  // least time in ns of each cover, whether groups are replaced by parts or not
  double fastest = 0;
  for (const TimedCover& cover : timed) {
    const double ns = undisturbed_ns(cover.samples_ns);
    if (!(ns > 0)) continue;
    const auto [at, is_new] = least.try_emplace(cover_of(cover), ns);
    at->second = std::min(at->second, ns);
    fastest = fastest > 0 ? std::min(fastest, ns) : ns;
  }
  if (fastest == 0) return;  // no cover could be timed, so nothing is known about them
  const auto is_kept = [&](const std::string& name) {
    const auto found = least.find(name);
    return found != least.end() && found->second <= kMayWin * fastest;
  };
  std::erase_if(*job.whole.covers, [&](const auto& cover) { return !is_kept(cover.first); });
  for (TimedCover& cover : timed) {
    if (is_kept(cover_of(cover))) continue;
    const double ns = undisturbed_ns(cover.samples_ns);
    if (ns > 0)
      cover.why = absl::StrFormat("not searched: default schedules take %.2f times the least time", ns / fastest);
    job.whole.left_out.push_back(cover);
  }
  std::erase_if(timed, [&](const TimedCover& cover) { return !is_kept(cover_of(cover)); });
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

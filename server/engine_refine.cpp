// Covers that measured times make others: chosen again with the times of all that was searched, until that calls for no
// kernel that is not known yet, and then the best one of known kernels. All follows from the graph and the stored
// records, so a restarted coordinator comes to the same covers.
#include <algorithm>

#include "compiler/ir/text.h"
#include "server/engine_state.h"

namespace wl {
namespace {

// Times that a cover is chosen again: as a rule, and where the answer is to be the best over all candidates.
constexpr int kMostRounds = 5, kMostCertifying = 50;

// Whether the plan calls for kernels that are still to be searched. Where it does not, the next round hopes for more,
// or there is none.
bool take_round(ActiveJob& job, const JobPlan& plan) {
  const bool news = std::any_of(plan.groups.begin(), plan.groups.end(), [&](const PlannedGroup& group) {
    return group.searched() && job.wanted[group.key] < job.row.options.trials;
  });
  if (news) {
    ++job.cover_rounds;
    job.prices.hope = kFirstHope;
    return true;
  }
  if (job.prices.otherwise == Unmeasured::kLikely && job.prices.hope * kFirstHope >= kLeastHope) {
    job.prices.hope *= kFirstHope;
    return false;
  }
  job.stable = true;
  const std::vector<PlannedLaunch>& cover = plan.levels[0].launches;
  job.cover_certified =
      job.prices.otherwise == Unmeasured::kBound && std::all_of(cover.begin(), cover.end(), [&](const auto& launch) {
        return job.records.contains(plan.groups[launch.group].key);
      });
  return false;
}

}  // namespace

void Engine::Impl::refine(ActiveJob& job) {
  if (std::exchange(job.refining, true)) return publish(job);
  const TuneOptions& asked = job.row.options;
  for (const PlannedGroup& group : job.plan->groups) {
    const auto record = job.records.find(group.key);
    // The default schedule's time alone says little about a kernel.
    if (group.searched() && record != job.records.end())
      job.prices.measured.insert_or_assign(graph_hash(group.graph), undisturbed_ns(record->second) / 1e3);
  }
  const bool thorough = asked.effort == "thorough";
  job.prices.otherwise = job.stable || job.cover_rounds == (thorough ? kMostCertifying : kMostRounds)
                             ? Unmeasured::kNever
                         : thorough ? Unmeasured::kBound
                                    : Unmeasured::kLikely;
  // Beside the engine's thread: of a large graph it takes seconds.
  compute([this, id = job.row.id, text = job.row.graph, asked, device = *job.row.device, prices = job.prices] {
    auto plan = std::make_shared<absl::StatusOr<JobPlan>>(make_plan(text, asked, device, *compiler, prices));
    post([this, id, plan] { take_refined(id, *std::move(plan)); });
  });
  publish(job);
}

void Engine::Impl::take_refined(int64_t job_id, absl::StatusOr<JobPlan> plan) {
  const auto found = jobs.find(job_id);
  if (found == jobs.end()) return;
  ActiveJob& job = found->second;
  job.refining = false;
  if (job.row.cancelling || job.stopping) return advance(job_id);
  const bool last = job.prices.otherwise == Unmeasured::kNever;
  // Not found: no whole cover has a right kernel for each of its groups, so the parts of the one there is will do.
  if (!plan.ok() && !(last && absl::IsNotFound(plan.status()))) return finish(job, JobState::kFailed, plan.status());
  job.refined = last;
  if (!last && !take_round(job, *plan)) return advance(job_id);
  if (plan.ok()) {
    job.plan = *std::move(plan);
    if (absl::Status status = want_all(job); !status.ok()) return finish(job, JobState::kFailed, std::move(status));
  }
  advance(job_id);
}

}  // namespace wl

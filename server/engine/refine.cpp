// Chooses covers again with measured times. Each round chooses a cover by the times of all kernels that were searched
// so far, and searches the kernels that this cover needs, until no cover needs a kernel without a record. The last
// cover is the best one of kernels with a record. Covers follow from the graph and the stored records, so a restarted
// coordinator chooses the same ones.
#include <algorithm>

#include "compiler/ir/text.h"
#include "server/engine/jobs.h"

namespace wl {
namespace {

// The largest number of rounds: kMostRounds by default, kMostCertifying with --effort thorough, which proves that the
// cover is the best over all candidates.
constexpr int kMostRounds = 5, kMostCertifying = 50;

// Adds a cover to the round if it needs kernels that are not searched yet and that no earlier cover of the round needs.
void add_to_round(ActiveJob& job, const JobPlan& plan) {
  std::vector<PlannedGroup> news;
  for (const PlannedGroup& group : plan.groups) {
    const auto is_it = [&](const PlannedGroup& other) { return other.key == group.key; };
    const auto needed = job.needed.find(group.key);
    if (group.fused_count == 0 || (needed != job.needed.end() && needed->second >= job.row.options.trials)) continue;
    if (job.round && std::any_of(job.round->groups.begin(), job.round->groups.end(), is_it)) continue;
    news.push_back(group);
  }
  if (news.empty()) return;
  ++job.covers_of_round;
  if (!job.round) {
    job.round = plan;
    return;
  }
  // A round searches the new groups of several covers with one plan. That plan has the launches of the first cover
  // only, so these groups are added to it as groups that no launch runs.
  for (PlannedGroup& group : news) {
    group.fused_count = group.part_count = 0;
    group.between_count = 1;
    job.round_needs.insert(group.key);
    job.round->groups.push_back(std::move(group));
  }
}

// Adds a cover to the round and returns whether the round is complete and has something to search. While the round is
// incomplete, prices.hope is lowered: the next cover is chosen as if kernels without a record were faster still. A
// complete round without anything to search makes the job stable.
bool take_round(ActiveJob& job, const JobPlan& plan) {
  add_to_round(job, plan);
  const bool more = job.prices.otherwise == Unmeasured::kLikely && job.prices.hope * kFirstHope >= kLeastHope;
  if (more && job.covers_of_round < kCoversOfARound) {
    job.prices.hope *= kFirstHope;
    return false;
  }
  job.prices.hope = kFirstHope;
  if (job.round) {
    ++job.cover_rounds;
    job.covers_of_round = 0;
    return true;
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

void Jobs::refine(ActiveJob& job) {
  if (std::exchange(job.refining, true)) return publish(job);
  const TuneOptions& asked = job.row.options;
  for (const PlannedGroup& group : job.plan->groups) {
    const auto record = job.records.find(group.key);
    // A group of which only the default schedule was measured gets no price, since a search may make it much faster.
    const bool was_searched = record != job.records.end() && (record->second.trials_asked > 1 || asked.trials == 1);
    if (group.searched() && was_searched)
      job.prices.measured.insert_or_assign(graph_hash(group.graph), undisturbed_ns(record->second.samples_ns) / 1e3);
  }
  const bool thorough = effort_of(asked).certifies;
  job.prices.otherwise = job.stable || job.cover_rounds == (thorough ? kMostCertifying : kMostRounds)
                             ? Unmeasured::kNever
                         : thorough ? Unmeasured::kBound
                                    : Unmeasured::kLikely;
  // Planning a large graph takes seconds, so it runs in the pool.
  plan_beside(job, [this, row = job.row, prices = job.prices, waiting = waiting_for_job(job)] {
    Work work(waiting);
    auto plan = std::make_shared<absl::StatusOr<JobPlan>>(timed_plan(row, row.options, *compiler_, prices, &work));
    take_found(row, plan, &Jobs::take_refined);
  });
  publish(job);
}

void Jobs::take_refined(int64_t job_id, absl::StatusOr<JobPlan> plan) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end() || was_left(plan.status())) return;
  ActiveJob& job = found->second;
  job.refining = false;
  // If the budget ended while the cover was being planned, the job keeps its present cover.
  job.stopping |= absl::IsDeadlineExceeded(plan.status());
  if (job.row.cancelling || job.stopping) return advance(job_id);
  const bool last = job.prices.otherwise == Unmeasured::kNever;
  // NotFound: no cover has a correct kernel for each of its groups. Then the job keeps its present cover, in which
  // parts take the place of groups without a kernel.
  if (!plan.ok() && !(last && absl::IsNotFound(plan.status()))) return finish(job, JobState::kFailed, plan.status());
  job.refined = last;
  if (!last) {
    if (!take_round(job, *plan)) return advance(job_id);
    plan = *std::exchange(job.round, std::nullopt);
  }
  if (plan.ok()) {
    job.plan = *std::move(plan);
    absl::Status status = need_wanted(job).status();
    for (const PlannedGroup& group : job.plan->groups)
      if (status.ok() && job.round_needs.contains(group.key)) status = need(job, group, job.row.options.trials);
    job.round_needs.clear();
    if (!status.ok()) return finish(job, JobState::kFailed, std::move(status));
  }
  advance(job_id);
}

}  // namespace wl

// Makes the state of a running job that clients see.
#include <algorithm>

#include "server/engine/jobs.h"

namespace wl {
namespace {

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

int64_t total(const OutcomeCounts& counts) {
  int64_t sum = 0;
  for (int64_t count : counts) sum += count;
  return sum;
}

GroupProgress group_progress(const ActiveJob& job, const PlannedGroup& group, const Search* search) {
  GroupProgress out;
  out.key = group.key;
  out.name = group.name;
  out.is_default = !group.searched();
  out.count = group.fused_count > 0     ? group.fused_count
              : group.between_count > 0 ? group.between_count
                                        : group.part_count;
  if (const auto needed = job.needed.find(group.key); needed != job.needed.end()) out.trials_total = needed->second;
  const auto record = job.records.find(group.key);
  if (record != job.records.end() && (search == nullptr || search->end != Search::End::kOpen)) {
    out.best_ns = median_of(record->second.samples_ns);
    out.default_ns = median_of(record->second.default_samples_ns);
    out.outcomes = record->second.outcomes;
    out.trials_done = total(out.outcomes);
    out.trials_total = std::max(out.trials_done, out.trials_total);
    out.done = true;
    out.cached = !job.searched.contains(group.key);
    return out;
  }
  if (search == nullptr) {
    out.done = job.reverifying && job.reverifying->settled.contains(group.key);
    if (out.done) out.trials_done = out.trials_total;
    return out;
  }
  out.done = search->end != Search::End::kOpen;
  out.best_ns = search->tally.best_ns;
  // best_ns and default_ns are each the undisturbed_ns() of one trial. Once the group has a record, they are medians.
  out.default_ns = search->tally.default_ns;
  out.outcomes = search->tally.outcomes;
  out.trials_done = total(out.outcomes);
  return out;
}

}  // namespace

JobProgress progress_of(const ActiveJob& job, const Searches& searches) {
  JobProgress out;
  bool finals = true;
  for (const PlannedGroup& group : job.plan->groups) {
    if (!job.reverifying && !job.needed.contains(group.key)) continue;  // the job needs no kernel of the group
    const auto at = job.searches.find(group.key);
    const Search* search = at == job.searches.end() ? nullptr : &searches.at(at->second);
    out.groups.push_back(group_progress(job, group, search));
    out.trials_done += out.groups.back().trials_done;
    out.trials_total += std::max(out.groups.back().trials_total, out.groups.back().trials_done);
    if (search != nullptr && search->end == Search::End::kOpen) finals &= search->promoting();
  }
  out.elapsed_s = seconds(Clock::now() - job.begun);
  const double done = static_cast<double>(out.trials_done);
  const double left = static_cast<double>(out.trials_total) - done;
  if (done > 0) out.left_s = out.elapsed_s / done * left;
  if (job.deadline) {
    const double budget_left = std::max(0.0, seconds(*job.deadline - Clock::now()));
    out.left_s = done > 0 ? std::min(out.left_s, budget_left) : budget_left;
  }
  out.phase = is_done(job.row.state) ? "done" : done == 0 ? "check" : finals ? "final" : "search";
  return out;
}

void Jobs::publish(ActiveJob& job) {
  job.published = Clock::now();
  Job out = job_of(job.row);
  if (job.plan) out.progress = progress_of(job, *searches_);
  out.progress.workers = job.row.device ? workers_->serving(*job.row.device, job.row.team) : 0;
  views_->publish(job.row.id, std::move(out));
}

}  // namespace wl

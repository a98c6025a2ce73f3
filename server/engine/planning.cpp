// Makes the plans of jobs, on the threads of the event loop's pools.
#include "server/engine/bounds/turns.h"
#include "server/engine/jobs.h"

namespace wl {
namespace {

constexpr int64_t kMostPlanAttempts = 3;
constexpr auto kLongPlanning = std::chrono::seconds(3);

}  // namespace

absl::StatusOr<JobPlan> timed_plan(const JobRow& row, const TuneOptions& options, const Compiler& compiler,
                                   const CoverPrices& prices, Work* work) {
  const auto begun = Clock::now();
  absl::StatusOr<JobPlan> plan = make_plan(row.graph, options, *row.device, compiler, prices, work);
  if (plan.ok()) plan->enumerate_s = std::chrono::duration<double>(Clock::now() - begun).count();
  return plan;
}

void Jobs::make_plan_of(ActiveJob& job) {
  job.planning = std::make_shared<ActiveJob::Planning>();
  if (job.row.graph.empty()) return plan_winners(job);
  plan_beside(job, [this, row = job.row, planning = job.planning, waiting = waiting_for_job(job)] {
    planning->begun = Clock::now().time_since_epoch().count();
    auto plan = std::make_shared<absl::StatusOr<JobPlan>>(absl::InternalError(""));
    if (row.plan_attempts >= kMostPlanAttempts) {
      *plan = absl::ResourceExhaustedError(
          cat("planning this job ended the coordinator ", row.plan_attempts,
              " times, so it is not tried again; cut the graph into smaller ones, or choose another --cover"));
    } else {
      Work work(waiting);
      *plan = timed_plan(row, row.options, *compiler_, {}, &work);
    }
    take_found(row, plan, &Jobs::take_plan);
  });
}

void Jobs::plan_beside(const ActiveJob& job, std::function<void()> work) {
  if (job.row.graph.size() <= kSmallGraph)
    loop_->compute(std::move(work));
  else
    loop_->compute_long(std::move(work), job.caller);
}

// Asks the upstream for records that the store lacks, then passes the plan to `take` on the engine's thread. Called on
// a thread of the pool.
void Jobs::take_found(const JobRow& row, const MadePlan& plan, TakePlan take) {
  const auto go_on = [this, id = row.id, plan, take](const std::string&) {
    loop_->post([this, id, plan, take] { (this->*take)(id, *std::move(plan)); });
  };
  plan->ok() ? find_missing(*store_, options_.elsewhere, **plan, row, go_on) : go_on("");
}

// Notes in the store that planning takes long. So planning that crashes the coordinator each time is not repeated for
// ever. Short planning is not noted, since a coordinator may be killed for other reasons.
void Jobs::note_long_planning(ActiveJob& job) {
  const Clock::rep begun = job.planning->begun;
  if (job.planning->noted || begun == 0) return;
  if (Clock::now() - Clock::time_point(Clock::duration(begun)) < kLongPlanning) return;
  job.planning->noted = store_->set_job_planning(job.row.id, true).ok();
}

}  // namespace wl

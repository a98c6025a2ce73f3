// Creates jobs. If the store has the answer to the whole job, the job is done at once. Otherwise it is planned, and it
// is done at once if the store has a record of every group of the plan, unless its cover is chosen again by measured
// times (chooses_again()).
#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <random>

#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "proto/limits.h"
#include "server/engine/impl.h"

namespace wl {
namespace {

void end_job(JobRow& row, JobState state) {
  row.state = state;
  row.finished_ms = unix_ms_now();
}

void answer_job(JobRow& row, JobResult result) {
  row.result = std::move(result);
  row.cached = true;
  end_job(row, JobState::kSucceeded);
}

// Whether an earlier answer had at least as many trials and as large a budget (0: unlimited) as this job asks for. Any
// answer suffices if the job searches nothing.
bool suffices(const Store::WholeAnswer& whole, const TuneOptions& asked) {
  if (asked.require_cached || !effort_of(asked).compares) return true;
  return whole.trials_asked >= asked.trials &&
         (whole.budget_s == 0 || (asked.budget_s > 0 && whole.budget_s >= asked.budget_s));
}

// Returns the groups without a record that suffices, of those that the job wants, by their index in JobPlan::groups.
std::vector<int> missing_groups(const std::map<int, int64_t>& wanted, const JobPlan& plan, const Records& records,
                                const TuneOptions& asked) {
  std::vector<int> missing;
  for (const auto& [at, trials] : wanted) {
    const PlannedGroup& group = plan.groups[at];
    const auto record = records.find(group.key);
    if (asked.retune || record == records.end() || !satisfies(record->second, trials, asked.budget_s))
      missing.push_back(at);
  }
  return missing;
}

// Calls `work`, a request to the upstream coordinator, blocks until it has called back, and returns the problem that it
// reported; "": there was none.
std::string wait_for(const std::function<void(const Elsewhere::Done&)>& work) {
  const auto said = std::make_shared<std::promise<std::string>>();
  work([said](const std::string& problem) { said->set_value(problem); });
  return said->get_future().get();
}

std::string and_why(const std::string& problem) {
  return problem.empty() ? std::string() : cat("; ", problem);
}

absl::Status plan_job(NewJob& job, Store& store, const Compiler& compiler, const Elsewhere& elsewhere, Work* work) {
  const TuneOptions& asked = job.row.options;
  WL_ASSIGN_OR_RETURN(job.plan, timed_plan(job.row, asked, compiler, {}, work));
  const std::string problem =
      wait_for([&](const auto& done) { find_missing(store, elsewhere, *job.plan, job.row, done); });
  WL_ASSIGN_OR_RETURN(const Records records, known_records(store, *job.plan, job.row.team));
  std::map<int, int64_t> wanted = wanted_trials(
      *job.plan, records, /*without=*/{},
      {.trials = asked.require_cached ? 1 : asked.trials, .compares = effort_of(asked).compares, .last_cover = false});
  // A job that only asks for what the store has wants nothing to compare its kernels with.
  if (asked.require_cached && effort_of(asked).compares)
    std::erase_if(wanted, [&](const auto& group) { return job.plan->groups[group.first].fused_count == 0; });
  const std::vector<int> missing = missing_groups(wanted, *job.plan, records, asked);
  job.misses = static_cast<int64_t>(missing.size());
  job.hits = static_cast<int64_t>(wanted.size()) - job.misses;
  if (missing.empty() && (asked.require_cached || !chooses_again(asked, compiler))) {
    if (auto result = assemble(*job.plan, records, {}); result.ok()) answer_job(job.row, *std::move(result));
  } else if (asked.require_cached) {
    std::string why = and_why(problem);
    for (const int at : missing) {
      const PlannedGroup& group = job.plan->groups[at];
      WL_ASSIGN_OR_RETURN(const bool lost, store.has_record_without_object(group.key, environment_of(*job.row.device),
                                                                           {.team = job.row.team}));
      if (!lost) continue;
      why = cat("; the object of the kernel of key ", group.key, " is lost or damaged", why);
      break;
    }
    job.row.error =
        absl::NotFoundError(cat(missing.size(), " of ", wanted.size(), " kernels are not in the store", why));
  }
  return absl::OkStatus();
}

}  // namespace

std::function<absl::Status()> waiting_for(const TuneOptions& asked, std::optional<Clock::time_point> over,
                                          const EventLoop& loop, std::function<bool()> gone) {
  return [over, budget_s = asked.budget_s, &loop, gone = std::move(gone)]() -> absl::Status {
    if (loop.leaving()) return absl::CancelledError("the coordinator stops");
    if (gone && gone()) return absl::CancelledError("nobody waits for the plan any more");
    if (over && Clock::now() > *over)
      return absl::DeadlineExceededError(
          cat("the budget of ", budget_s, " s is over, and the graph's plan is not made yet: planning took all of it; ",
              "give a longer --budget, a smaller graph or another --cover"));
    return absl::OkStatus();
  };
}

JobRow own_job(const std::string& kind, const std::string& team, const std::string& label, TuneOptions options,
               const std::string& graph) {
  std::random_device random;
  JobRow job;
  job.own = true;
  job.team = team;
  job.request_id = absl::StrFormat("%s-%08x%08x%08x%08x", kind, random(), random(), random(), random());
  job.label = fitted(label, TextKind::kName, kMostName);
  job.graph = graph;
  job.device = options.device;
  job.options = std::move(options);
  job.state = JobState::kRunning;
  job.created_ms = job.started_ms = unix_ms_now();
  return job;
}

absl::StatusOr<NewJob> answer_or_plan(JobRow row, Store& store, const Compiler& compiler, const Workers& workers,
                                      const Elsewhere& elsewhere, Work* work) {
  NewJob job{.row = std::move(row), .plan = {}, .result_id = {}};
  const TuneOptions& asked = job.row.options;
  auto device = workers.device_for(asked, job.row.team);
  std::string problem;
  if (absl::IsNotFound(device.status()) && elsewhere.find_devices) {
    problem = wait_for(elsewhere.find_devices);
    device = workers.device_for(asked, job.row.team);
  }
  if (!device.ok() && !absl::IsNotFound(device.status())) return device.status();
  if (device.ok()) {
    job.row.device = *device;
    job.result_id = result_key(job.row.graph, *device, asked, job.row.team);
    if (!asked.retune) {
      WL_ASSIGN_OR_RETURN(auto whole, store.whole_answer(job.result_id));
      if (whole && suffices(*whole, asked)) {
        job.hits = static_cast<int64_t>(whole->result.groups.size());
        answer_job(job.row, std::move(whole->result));
        job.result_id.clear();  // an empty id keeps the store from storing the same answer again
        return job;
      }
    }
    // An answer that compares nothing is not stored, so that the next one has the kernels that were found meanwhile.
    if (!effort_of(asked).compares) job.result_id.clear();
    WL_RETURN_IF_ERROR(plan_job(job, store, compiler, elsewhere, work));
  } else {
    WL_RETURN_IF_ERROR(parse(job.row.graph).status());
    if (asked.require_cached)
      job.row.error = absl::NotFoundError(cat(std::string(device.status().message()), and_why(problem)));
  }
  if (job.row.result) return job;
  if (asked.require_cached) {
    end_job(job.row, JobState::kNotCached);
  } else if (device.ok()) {
    job.row.state = JobState::kRunning;
    job.row.started_ms = job.row.created_ms;
  }
  return job;
}

}  // namespace wl

#include "server/jobs/reverify.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// Two times of one kernel on one machine differ by less than this factor, even if they are measured long apart.
constexpr double kNoise = 1.15;

std::string times(double before_ns, double now_ns) {
  return absl::StrFormat("%.3g us before, %.3g us now", before_ns / 1e3, now_ns / 1e3);
}

// Returns the last trial that a plan had in a promotion or a confirmation; null if it had none.
const PhaseTrial* last_of(const std::string& plan, const std::vector<PhaseTrial>& trials) {
  const PhaseTrial* last = nullptr;
  for (const PhaseTrial& item : trials)
    if (item.phase > 0 && item.trial.plan == plan && (last == nullptr || item.phase >= last->phase)) last = &item;
  return last;
}

}  // namespace

absl::StatusOr<Winner> winner_of(const KernelRecord& record, const Device& device) {
  WL_ASSIGN_OR_RETURN(Graph graph, parse(record.graph));
  for (const bool cold : {false, true}) {
    TuneOptions options;
    options.cold = cold;
    if (problem_key(graph, device, options) != record.key) continue;
    Winner winner{planned_group(std::move(graph), record.key), cold};
    winner.group.fused_count = 1;
    return winner;
  }
  return absl::FailedPreconditionError("this version of Warploom knows its graph by another key");
}

ReverifiedAs reverified_as(const KernelRecord& before, const std::optional<KernelRecord>& now,
                           const std::vector<PhaseTrial>& trials, const std::string& why) {
  const PhaseTrial* const last = last_of(before.plan, trials);
  const bool holds = std::any_of(trials.begin(), trials.end(), [&](const PhaseTrial& item) {
    return item.phase > 0 && item.trial.plan == before.plan && item.trial.outcome == Outcome::kCorrect;
  });
  if (last != nullptr && !holds) {
    const std::string served = now ? "; another plan is served" : "";
    const std::string& says = last->trial.message;
    return {Reverified::kLost,
            cat(kOutcomeNames[static_cast<int>(last->trial.outcome)], says.empty() ? "" : ": ", says, served)};
  }
  if (!now) return {Reverified::kLost, why.empty() ? "this version of Warploom cannot make its plan" : why};
  const double was = undisturbed_ns(before.samples_ns), is = undisturbed_ns(now->samples_ns);
  if (now->plan != before.plan)
    return {Reverified::kMoved, cat(now->plan == now->default_plan ? "the default schedule" : "another plan",
                                    " is faster: ", times(was, is))};
  if (is > was * kNoise) return {Reverified::kMoved, cat("slower: ", times(was, is))};
  if (is * kNoise < was) return {Reverified::kMoved, cat("faster: ", times(was, is))};
  return {Reverified::kKept, ""};
}

absl::StatusOr<JobResult> reverified_result(JobPlan plan, const Records& records,
                                            const std::set<std::string>& transferred) {
  plan.levels.assign(1, {});
  for (size_t group = 0; group < plan.groups.size(); ++group) {
    if (records.contains(plan.groups[group].key))
      plan.levels[0].launches.push_back({.group = static_cast<int>(group), .arguments = {}, .stores = {}});
  }
  return assemble(plan, records, transferred, transferred);
}

}  // namespace wl

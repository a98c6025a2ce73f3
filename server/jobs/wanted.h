// Which groups of a job's plan get trials, and how many: first the job's own cover, then only what may change the
// answer or is needed for the report (docs/design/covers.md#which-groups-are-searched). A function of the plan and the
// records so far alone. A restarted coordinator may decide otherwise, where a later promotion replaced the times of
// default schedules; reports of batches that it then does not ask for are refused.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "server/jobs/job_plan.h"

namespace wl {

// By how much the model of times may be wrong about two ways to compute the same: what the model says takes more than
// this factor of the time of something else is not tried against it.
inline constexpr double kModelErrs = 1.3;

// What a job asks for, as far as it decides which groups get trials.
struct Wish {
  int64_t trials = 1;    // of each group that is searched
  bool compares = true;  // as in Effort
  // Whether kernels of the last cover are made at once: they are the answer if the time ends before others are found,
  // or if the launches of groups without a kernel cannot be replaced.
  bool last_cover = false;
  // If the wish does not compare: keys of the groups for which a plan is known that is likely to be good.
  std::set<std::string> promising = {};
};

// Returns the numbers of trials of groups, by their index in JobPlan::groups; 1: the default schedule only. Groups that
// are not in the result need no kernel, as far as is known. `without`: keys of the groups for which a search has found
// no correct kernel. Until every group of the first cover has a record or is one of `without`, the result has these
// groups alone, and all parts of those of `without`. Then it has also
// - parts in a cover between the first and the last that take less than kModelErrs times the group's time by the model:
//   their default schedules, and all trials if these take less time together than the group's default schedule;
// - for the comparison of the report, the kernels that the last cover runs in place of the groups that take most time.
// Unless the wish compares, the result has only what an answer needs: the groups of the first cover that were searched
// before or are promising; in place of others their parts in the cover before the last, and parts of those without a
// kernel.
std::map<int, int64_t> wanted_trials(const JobPlan& plan, const Records& records, const std::set<std::string>& without,
                                     const Wish& wish);

// Returns the sum of the modelled times in ns of all launches of the plan's first cover; 0 if the model has no answer
// for one of them.
double modelled_ns(const JobPlan& plan);

}  // namespace wl

// Which kernel a coordinator searches further while nobody waits for its workers: the one whose programs can be
// expected to save most time for the trials that it takes. Pure functions (docs/design/service.md#background-searches).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/job.h"

namespace wl {

// A kernel that programs of a team run.
struct Demand {
  std::string team, key;
  double ns_per_day = 0;  // time in ns that the team's programs spend in the kernel each day
  // Times in ns of one launch: of the kernel, of the default schedule of its group, and the least that the machine's
  // peak rates allow; 0: not known.
  double best_ns = 0, default_ns = 0, bound_ns = 0;
  int64_t trials = 0;  // number of trials that the searches of the kernel were allowed to make
};

// Returns the time in ns that launches of a kernel took: as it was sampled or, where no launch was timed (as on GPUs),
// as many times `best_ns`, the time of one launch.
double ns_of(const KernelUse& use, double best_ns);
// Returns a sum over the days from `first_day` to `today`, both included, as one of each day.
double per_day(double sum, int64_t first_day, int64_t today);

// Returns the share of the default schedule's time that a search usually saves: the median over the kernels in the list
// that were searched; a guess if none was.
double usual_saving(const std::vector<Demand>& kernels);

// Returns the number of trials that the next search of a kernel asks for, earlier ones included: a few at first, then
// four times as many as before, up to a limit.
int64_t next_trials(const Demand& kernel);

// Returns the share of the kernel's time that its next search is expected to save. A kernel with a default schedule can
// be expected to improve as others did. One that was searched can be expected to improve by a part of what its search
// saved, the less, the more trials it had. None can become faster than its bound, and none is
// searched beyond the limit of trials.
double expected_share(const Demand& kernel, double usual);

// Returns why a kernel is not searched further, for people: nothing is expected of a search, or less than it costs.
// Empty: its next search pays.
std::string why_not_searched(const Demand& kernel, double usual);

// Returns the index of the kernel to search next; nullopt: no search would save in a month what it costs. Teams take
// turns, so that what a team's programs say cannot keep other teams waiting: the next is the team that was given the
// fewest trials in proportion to its weight. `given`: trials that each team was given; `weights`: of teams, 1 if
// a team is not in it; a weight of 0 leaves the team out.
std::optional<size_t> worth_most(const std::vector<Demand>& kernels, const std::map<std::string, double>& given,
                                 const std::map<std::string, double>& weights);

}  // namespace wl

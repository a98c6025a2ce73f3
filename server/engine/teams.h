// Teams of callers that share one coordinator. Records of a team's jobs are for the team alone; records of jobs without
// a team ("") are shared. See docs/design/service.md#teams.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace wl {

// The rules of a team. Callers without a team have the default values.
struct TeamRules {
  int64_t weight = 1;     // the team's share of the candidates handed to workers, relative to teams of its priority
  int64_t priority = 0;   // the team's priority: teams with a higher one are always served first
  int64_t most_jobs = 0;  // maximum number of unfinished jobs of the team at a time; 0: no limit
  // Number of trials in a day (UTC) after which the coordinator begins no further search by itself for kernels that
  // programs of the team run; 0: no limit.
  int64_t most_background = 0;
  bool publishes = false;  // whether a kernel on which workers of two principals agree becomes shared
};
// The priority of work for which no client waits: below that of any team.
inline constexpr int64_t kBackground = -1'000'000'000;
// A function that returns the rules of a team. It is called on any thread.
using RulesOf = std::function<TeamRules(const std::string& team)>;

}  // namespace wl

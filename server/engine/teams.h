// Teams share one coordinator. What a team's jobs find is for the team alone; what jobs of no team ("") find is shared.
// See docs/design/service.md#teams.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace wl {

// What holds for a team. Who has none has these first values.
struct TeamRules {
  int64_t weight = 1;      // while teams of one priority wait for the same workers, each gets candidates by its weight
  int64_t priority = 0;    // a team with a higher one is always served first
  int64_t most_jobs = 0;   // that are not done at once; 0: any number
  bool publishes = false;  // a kernel that two principals agree on becomes a shared one
};
// The priority of what nobody waits for: below that of any team.
inline constexpr int64_t kBackground = -1'000'000'000;
using RulesOf = std::function<TeamRules(const std::string& team)>;  // any thread

}  // namespace wl

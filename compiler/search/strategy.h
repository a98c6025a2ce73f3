// Search strategies. A strategy has no state but the trials: propose() is a pure function of the space, the trials so
// far (in trial order), the number of wanted points, and the seed of a random sequence. So it gives the same answer
// after a restart of the coordinator. To add a strategy, add a file and a row of strategies.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/schedule/space.h"

namespace wl {

// A trial, as far as strategies look at it.
struct Observed {
  Point point;
  bool correct = false;
  double ns = 0;        // the trial's time, undisturbed_ns() of its samples; only valid if `correct`
  CodeFacts code = {};  // facts about the code of GPU kernels that compiled, even if they were not run
};

struct Strategy {
  std::string_view name;
  std::string_view says;
  // Returns at most n distinct legal points, none of which is among `trials`. There are fewer, or none, if the space is
  // exhausted.
  std::vector<Point> (*propose)(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed);
};
std::span<const Strategy> strategies();  // returns the rows of strategies.def
// Returns the strategy of this name. InvalidArgument, with a list of the known names: there is none.
absl::StatusOr<const Strategy*> strategy_named(std::string_view name);

}  // namespace wl

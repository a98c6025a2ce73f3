// Search strategies. A strategy has no state but the trials: propose() is a pure function of the space, the trials so
// far (in trial order), the number of points that are wanted, and a seed of the random sequence. So it gives the same
// answer after a restart. To add a strategy, add a file and a row of strategies.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/schedule/space.h"

namespace wl {

// A trial as strategies see it.
struct Observed {
  Point point;
  bool correct = false;
  double ns = 0;        // undisturbed_ns() of the samples; valid if correct
  CodeFacts code = {};  // set for GPU kernels that compiled, whether they were run or not
};

struct Strategy {
  std::string_view name;
  std::string_view says;
  // Returns at most n distinct legal points, none of which is among `trials`. There are fewer, or none, when the space
  // is exhausted.
  std::vector<Point> (*propose)(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed);
};
std::span<const Strategy> strategies();  // the rows of strategies.def
// Returns the strategy of this name. The error for an unknown name is InvalidArgument and lists the known ones.
absl::StatusOr<const Strategy*> strategy_named(std::string_view name);

}  // namespace wl

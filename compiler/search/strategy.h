// A strategy has no state but the trials. propose() is a pure function of the space, the trials so far (in trial
// order), the number of points that are wanted and a seed, so that it gives the same answer after a restart. A new
// strategy is a file and a row of strategies.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/schedule/space.h"

namespace wl {

struct Observed {
  Point point;
  bool correct = false;
  double ns = 0;        // the least sample; meaningful when correct
  CodeFacts code = {};  // of GPU kernels that compiled, whether they were run or not
};

struct Strategy {
  std::string_view name;
  std::string_view says;
  // At most n distinct legal points, none of them among `trials`; fewer (or none) when the space is exhausted.
  std::vector<Point> (*propose)(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed);
};
std::span<const Strategy> strategies();  // strategies.def
absl::StatusOr<const Strategy*> strategy_named(std::string_view name);

}  // namespace wl

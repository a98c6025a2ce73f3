// Scores of a replayed search, as pure functions.
#pragma once

#include <vector>

#include "bench/replay/t4.h"

namespace wl {

// A curve's element t is the best correct time in ns after t + 1 trials or, while no trial was correct, the worst time
// of the space.
using Curve = std::vector<double>;

// Returns the exact expected curve of drawing points without replacement. Points that failed are also drawn.
Curve random_curve(const Recording& recording, int trials);

// Returns the number of trials after which drawing at random is expected to have come 95 % of the way from the median
// time of the space to its best time. This is the budget that the auto-tuning methodology defines (Willemsen et al.,
// 2024).
int methodology_budget(const Recording& recording);

// Returns the score that the auto-tuning methodology defines: 0 = as good as random drawing, 1 = the best from the
// first trial on. It is the mean of (random - curve) / (random - best) at 50 equally spaced points of the budget, where
// `curve` is a mean over seeds.
double methodology_score(const Recording& recording, const Curve& curve);

double geometric_mean(const std::vector<double>& values);

}  // namespace wl

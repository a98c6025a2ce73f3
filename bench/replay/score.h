// What a replayed search is worth. Pure.
#pragma once

#include <vector>

#include "bench/replay/t4.h"

namespace wl {

// best[t]: the best correct time after t + 1 trials, ns; the space's worst while nothing was correct.
using Curve = std::vector<double>;

// Expected curve of drawing points without replacement, exactly: from the order of all results, failures included.
Curve random_curve(const Recording& recording, int trials);

// Trials after which random drawing is expected to have come 95 % of the way from the median of the space to its best:
// the budget of the auto-tuning methodology (Willemsen et al., 2024).
int methodology_budget(const Recording& recording);

// That methodology's score: 0 = as good as random drawing, 1 = the best at once; the mean of
// (random - curve) / (random - best) at 50 equally spaced points of the budget, `curve` being a mean over seeds.
double methodology_score(const Recording& recording, const Curve& curve);

double geometric_mean(const std::vector<double>& values);

}  // namespace wl

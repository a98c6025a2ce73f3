#include "compiler/search/budget.h"

#include <algorithm>
#include <cmath>

namespace wl {
namespace {

constexpr double kPrior = 0.25;  // share of (best time - lower bound) that a search's second round is expected to save
constexpr double kLearn = 0.5;   // weight of the latest round in the exponential average of the shares that rounds save
// The possible gain, (best time - lower bound), counts as at least this share of the best time, because lower bounds
// are computed from nominal rates of the hardware.
constexpr double kLeastLeft = 0.1;
constexpr double kLeastShare = 0.05;
// A search stops if its next round is expected to save less than this share of the kernel's time.
constexpr double kWorthARound = 1e-3;

double left_of(const Standing& standing, double best) {
  return std::max(best - standing.bound_ns, kLeastLeft * best);
}

}  // namespace

double chance_of_gain(const Standing& standing) {
  double chance = kPrior;
  for (size_t i = 1; i < standing.best_ns.size(); ++i) {
    const double before = standing.best_ns[i - 1], after = standing.best_ns[i];
    if (after <= 0) continue;
    // The round of the first correct candidate has no earlier time to compare with, so kPrior stands for its saving.
    const double won = before <= 0 ? kPrior : (before - after) / left_of(standing, before);
    chance += kLearn * (std::clamp(won, 0.0, 1.0) - chance);
  }
  return chance;
}

double expected_saving(const Standing& standing) {
  if (standing.best_ns.empty() || standing.best_ns.back() <= 0) return 0;
  return static_cast<double>(standing.launches) * left_of(standing, standing.best_ns.back()) * chance_of_gain(standing);
}

double due(int64_t round, double saving, double largest) {
  if (round <= 0 || largest <= 0) return static_cast<double>(round);
  return static_cast<double>(round) / std::clamp(std::sqrt(saving / largest), kLeastShare, 1.0);
}

bool is_spent(const Standing& standing) {
  if (standing.best_ns.empty() || standing.best_ns.back() <= 0) return false;
  const double best = standing.best_ns.back();
  return chance_of_gain(standing) * left_of(standing, best) < kWorthARound * best;
}

}  // namespace wl

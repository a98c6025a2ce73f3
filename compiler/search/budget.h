// Divides the rounds of measurement among the searches of a job, by the time that the next round of each search is
// expected to save: launches of the kernel x (best time - lower bound) x the share of that difference that a round is
// expected to save. All are pure functions of the results so far, so a search that is resumed after a restart continues
// as it would have without one.
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

// The state of the search of one group.
struct Standing {
  int64_t launches = 1;         // how often the whole graph launches the group's kernel
  double bound_ns = 0;          // lower bound in ns of the time of any kernel of the group
  std::vector<double> best_ns;  // least time in ns after each round; 0: no candidate has been correct yet
};

// Returns the share of (best time - lower bound) that the next round of the search is expected to save. It is an
// exponential average of the shares that the rounds have saved: it begins with a prior, and each round replaces half of
// the estimate by the share that the round has saved.
double chance_of_gain(const Standing& standing);

// Returns by how many ns the next round is expected to shorten the whole graph's time; 0 before any candidate is
// correct.
double expected_saving(const Standing& standing);

// Returns when round number `round` (from 0) of a search is due; the search with the smallest result is next. The
// result counts rounds of the search with the largest expected saving, `largest`; `saving` is that of this search. The
// frequency of rounds is proportional to the square root of the saving: a group that may save a quarter as much gets
// half the rounds. Every group gets some rounds, since the savings are only estimates.
double due(int64_t round, double saving, double largest);

// Whether a search should stop early, since its next round is expected to save less than a thousandth of the group's
// time.
bool is_spent(const Standing& standing);

}  // namespace wl

// Which search should have the next round of candidates: the one that is expected to save most, by occurrences x
// (time - bound) x chance of gain. Pure functions of the results so far, so that a resumed search continues alike.
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

// The state of one group's search.
struct Standing {
  int64_t launches = 1;         // in the whole graph
  double bound_ns = 0;          // no kernel of the group is faster
  std::vector<double> best_ns;  // after each round; 0: nothing correct yet
};

// The part of (time - bound) that the next round is expected to save: a prior, half of which is replaced by what each
// round did save.
double chance_of_gain(const Standing& standing);

// ns of the whole that the next round is expected to save; 0 before the first round.
double expected_saving(const Standing& standing);

// When round `round` (from 0) of a search is due, smaller first, in rounds of a search that matters as much as the one
// that matters most (`largest` = the largest expected saving of all). A group that may save a quarter as much gets
// half the rounds: no group is starved, since a saving is only expected.
double due(int64_t round, double saving, double largest);

// Early stopping: the next round is expected to save less than a thousandth of the group's time.
bool is_spent(const Standing& standing);

}  // namespace wl

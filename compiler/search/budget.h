// Where the next round of candidates saves most: occurrences x (time - bound) x chance of gain. Pure functions of what
// rounds so far came to, so that a resumed search is dealt with alike.
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

// What is known of one group's search.
struct Standing {
  int64_t launches = 1;         // in the whole graph
  double bound_ns = 0;          // no kernel of the group is faster
  std::vector<double> best_ns;  // after each round; 0: nothing correct yet
};

// Expected part of what is left (time - bound) that the next round will win: a prior, and half of it replaced by what
// each round really won.
double chance_of_gain(const Standing& standing);

// ns of the whole that the next round is expected to save; 0 before the first round.
double expected_saving(const Standing& standing);

// When round `round` (from 0) of a search is due, smaller first, in rounds of a search that matters as much as the one
// that matters most (`largest` = the largest expected saving of all). A group that may save a quarter as much gets
// half the rounds: no group is starved, since a saving is only expected.
double due(int64_t round, double saving, double largest);

// Early stopping: the next round is not expected to win even a thousandth of the group's time.
bool is_spent(const Standing& standing);

}  // namespace wl

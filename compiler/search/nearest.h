// Winners of similar groups as first candidates. Pure: what is known is passed in.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/plan/space.h"

namespace wl {

struct KnownPlan {
  std::string graph;  // of the group it won
  std::string plan;
  double gain = 1;  // the default schedule's time over its own
};

// How unlike two groups are: 0 = alike. Ops that only one has, and how far apart their sizes are, in doublings.
double unlikeness(const Graph& a, const Graph& b);

// At most `most` distinct points of the space that won nearby, nearest first. Only what gained something counts: where
// the default schedule won, it is tried anyway. Of another target or loop class, or outside this space: not at all.
std::vector<Point> nearest_winners(const Graph& group, const Space& space, std::span<const KnownPlan> known, int most);

}  // namespace wl

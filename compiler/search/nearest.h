// Winners of similar groups as first candidates. Pure: what is known is passed in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

struct KnownPlan {
  std::string graph;  // of the group it won
  std::string plan;
  double gain = 1;  // the default schedule's time over its own
};

// How unlike two groups are: 0 = alike. Ops that only one has, and how far apart their sizes are, in doublings.
double unlikeness(const Graph& a, const Graph& b);

// How much further away another target's winner is than one of the same, in doublings: one of the same family, a GPU of
// another one. Nothing: a CPU's says nothing about a GPU. Targets as plans name them: "cuda:sm_90a".
std::optional<double> target_distance(std::string_view a, std::string_view b);

// The point that makes the choices of a plan, whatever target it was made for; where an axis has not its value, the
// nearest one that it has. Nothing where the plan is of another loop class, has other axes, or the point is not legal.
std::optional<Point> translated(const Space& space, std::string_view plan);

// At most `most` distinct points of the space that won nearby, nearest first. Only what gained something counts: where
// the default schedule won, it is tried anyway. What translated() has nothing for: not at all.
std::vector<Point> nearest_winners(const Graph& group, const Space& space, std::span<const KnownPlan> known, int most);

}  // namespace wl

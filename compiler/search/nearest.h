// Winners of similar groups, as the first candidates of a search. The functions are pure: their caller passes the known
// winners.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

// A winner is proposed for other groups if its KnownPlan::gain is at least this.
inline constexpr double kWorthProposing = 1.02;

// The winner of another search.
struct KnownPlan {
  std::string graph;  // text of the graph of the group for which the plan won
  std::string plan;
  double gain = 1;       // the time of the default schedule divided by that of the plan
  std::string kin = {};  // kin_of(graph)
};

// Returns the text of a group's graph without the extents of its values. Groups with the same text are kin: winners of
// one are likely to win for the others.
std::string kin_of(std::string_view graph);

// Returns how unlike two groups are; 0: they are alike. It is the number of ops that only one of them has, plus the
// sum, over the extents of their largest tensors, of how many doublings lie between the two extents.
double unlikeness(const Graph& a, const Graph& b);

// Returns the distance of two targets, which is added to unlikeness(): 0 for the same target, 2 for the same family, 4
// for GPUs of two families. Returns nullopt for a CPU and a GPU, since winners of one say nothing about the other.
// Targets are named as in plans: "cuda:sm_90a".
std::optional<double> target_distance(std::string_view a, std::string_view b);

// Returns the point of the space that makes the same choices as a plan, even a plan for another target. If an axis does
// not have the plan's value, the point has the nearest value of the axis. Returns nullopt if the plan is for another
// class of kernels or has axes that the space lacks, or if the point is not legal.
std::optional<Point> translated(const Space& space, std::string_view plan);

// Returns at most `most` distinct points of the space that are translated() from winners of similar groups, nearest
// first. Plans that are hardly faster than the default schedule are left out, since every search tries that schedule
// anyway. Plans for which translated() returns nullopt are also left out.
std::vector<Point> nearest_winners(const Graph& group, const Space& space, std::span<const KnownPlan> known, int most);

}  // namespace wl

// Finds the reduced axes that a block can walk in turns (iterations over parts of the axis, carried.h), and how far it
// must walk.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// A value function(x - r) and the reduction r that it takes, for functions and reductions whose correction is known
// (the table is in carried_axis.cpp).
struct Corrected {
  NodeId value = -1, reduction = -1;
};
std::optional<Corrected> corrected(const Graph& graph, NodeId id);

// A reduced axis of a group, for blocks that walk it in parts of some length.
struct CarriedAxis {
  std::vector<int> dim;  // by node of the group: which of its dimensions lies along the axis, -1: none
  int64_t extent = 0;
  std::vector<NodeId> reductions;  // the reductions and contractions over the axis, ascending
};

// The axes of the group that can be walked in turns: one for each corrected() value.
std::vector<CarriedAxis> carried_axes(const Graph& group);
// The elements along an axis that can change a result: in each row, those up to the row's coordinate along `row` (an
// iota) plus `plus`. row -1: no limit is known.
struct CarriedLimit {
  NodeId row = -1;
  int64_t plus = 0;
};
CarriedLimit carried_limit(const Graph& group, const CarriedAxis& axis);

}  // namespace wl

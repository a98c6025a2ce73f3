// Finds the reduced axes that a block can walk in turns (iterations over parts of the axis, carried.h), and which
// elements of an axis can change a result.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// A node `value`, which is function(x - r), and its `reduction` r, if the function and the kind of reduction have a
// known correction (the table in carried_axis.cpp).
struct Corrected {
  NodeId value = -1, reduction = -1;
};
std::optional<Corrected> corrected(const Graph& graph, NodeId id);

// A reduced axis of a group that blocks can walk in turns (iterations over parts of it).
struct CarriedAxis {
  std::vector<int> dim;  // of each node of the group: which of its dimensions is the axis; -1: none
  int64_t extent = 0;
  std::vector<NodeId> reductions;  // the reductions and contractions over the axis, ascending
};

// Returns the axes of the group that can be walked in turns: one for each value for which corrected() knows a
// correction.
std::vector<CarriedAxis> carried_axes(const Graph& group);
// The elements along an axis that can change a result: in each row, those whose coordinate along the axis is at most
// the row's value of `row`, an iota of the group, plus `plus`. row -1: no limit is known.
struct CarriedLimit {
  NodeId row = -1;
  int64_t plus = 0;
};
CarriedLimit carried_limit(const Graph& group, const CarriedAxis& axis);

}  // namespace wl

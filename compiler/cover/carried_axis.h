// Reduced axes that a block can walk in turns (carried.h), and how far.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// A function's value and the reduction that it takes, where a correction is known (carried_axis.cpp has the table).
struct Corrected {
  NodeId value = -1, reduction = -1;
};
std::optional<Corrected> corrected(const Graph& graph, NodeId id);

// A reduced axis of a group, for blocks that walk it in parts of some length.
struct CarriedAxis {
  std::vector<int> dim;  // by node of the group: which of its dimensions lies along the axis, -1: none
  int64_t extent = 0;
  std::vector<NodeId> reductions;  // over the axis, contractions too; ascending
};

// The axes that can be walked so: one for each reduction that a correction is known for.
std::vector<CarriedAxis> carried_axes(const Graph& group);
// Elements along an axis that count for something: in each row those up to the row's place along `row`, an iota, plus
// `plus`. row -1: all do, as far as is known.
struct CarriedLimit {
  NodeId row = -1;
  int64_t plus = 0;
};
CarriedLimit carried_limit(const Graph& group, const CarriedAxis& axis);

}  // namespace wl

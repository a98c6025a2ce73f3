// Reductions in one pass: a block walks a reduced axis in turns, and carries what it has reduced so far. softmax(QK')V
// so needs no row of scores: a turn makes the scores of some keys, and what was summed before is corrected when the
// maximum grows. Any reduction has this form whose result the function of a known correction takes (carried_axis.h),
// with all sums and contractions of multiples of that function's values over the same axis.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cover/carried_axis.h"
#include "compiler/cover/slab.h"

namespace wl {

// A value that parts of a block hand on in scratch.
struct CarriedValue {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::optional<double> start;  // before the first turn
  int becomes = -1;             // the value that it is copied to at the end of a turn
  bool of_turn = false;         // its shape has the length of the turn
};

// What an input or output of a part's graph is: a node of the slab's group, an output of that group, or a value.
struct CarriedEnd {
  NodeId input = -1;
  int output = -1, value = -1;
};

// What a block does once before the turns, in every turn, and once after them. `place` is the first in a turn: it puts
// inputs into the order in which the rest of the turn reads them. `before` and `place` have no outputs where they have
// nothing to do.
struct CarriedParts {
  struct Part {
    Graph graph;
    std::map<std::string, CarriedEnd> ends;  // by the name of the input or output
  };
  Part before, place, turn, after;
  std::vector<CarriedValue> values;
};

// `slab`: of one turn along `axis`. `in_place`: inputs are read in whatever order they are in, for stages whose values
// are in registers. InvalidArgument, with the reason, when something else than multiples of the function's values is
// reduced over the axis.
absl::StatusOr<CarriedParts> carried_parts(const Graph& group, const CarriedAxis& axis, const Slab& slab,
                                           bool in_place = false);

}  // namespace wl

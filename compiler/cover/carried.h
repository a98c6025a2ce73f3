// Reductions in one pass: a block walks a reduced axis in turns (iterations over parts of the axis), and carries its
// partial results from one turn to the next. So softmax(QK')V needs no row of scores in memory: a turn computes the
// scores of some keys, and the sums of earlier turns are corrected when the maximum grows. This works for a reduction r
// that a function with a known correction takes, as function(x - r) (carried_axis.h), together with all sums and
// contractions, over the same axis, of multiples of that function's values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cover/carried_axis.h"
#include "compiler/cover/slab.h"

namespace wl {

// A value that one part of a block's work leaves in scratch (the block's own memory) for another part.
struct CarriedValue {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::optional<double> start;  // of every element, before the first turn
  int becomes = -1;             // index of the value that it is copied to at the end of a turn
  bool of_turn = false;         // its shape depends on the length of a turn
};

// What an input or output of a part's graph stands for: an input or iota of the group (`input`, its node), an output of
// the group (`output`, its index) or a CarriedValue (`value`, its index). The others are -1.
struct CarriedEnd {
  NodeId input = -1;
  int output = -1, value = -1;
};

// The work of a block: `before` runs once before the turns, `place` and then `turn` in every turn, and `after` once
// after them. `place` copies inputs into the order in which `turn` reads them. The graphs of `before` and `place` have
// no outputs where there is nothing to do.
struct CarriedParts {
  struct Part {
    Graph graph;
    std::map<std::string, CarriedEnd> ends;  // by the name of the input or output
  };
  Part before, place, turn, after;
  std::vector<CarriedValue> values;
};

// Divides the work of a block into these parts. `slab`: the block's share of one turn along `axis`. `in_place`: inputs
// are read in the order that they have in memory, for stages whose values are in registers. InvalidArgument, with the
// reason, when the group reduces over the axis anything but multiples of the function's values.
absl::StatusOr<CarriedParts> carried_parts(const Graph& group, const CarriedAxis& axis, const Slab& slab,
                                           bool in_place = false);

}  // namespace wl

// Reductions in one pass. A block walks a reduced axis in turns (iterations over parts of the axis), and carries its
// partial results from one turn to the next. So softmax(QK')V needs no row of scores in memory: a turn computes the
// scores of some keys, and when the maximum grows, the sums of earlier turns are corrected. This works for a reduction
// r of all x if a function of x - r is computed that has a known correction (carried_axis.h), and if all other sums and
// contractions over the same axis are of multiples of that function's values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cover/slab/carried_axis.h"
#include "compiler/cover/slab/slab.h"

namespace wl {

// A value that one part of a block's work leaves in scratch (the block's own memory) for another part.
struct CarriedValue {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::optional<double> start;  // initial value of every element; nullopt: a stage stores the value before any reads it
  int becomes = -1;             // index of the value that receives this one after each iteration; -1: none
  bool of_turn = false;         // whether the shape depends on the number of elements of an iteration
};

// What an input or output of a part's graph stands for. Exactly one field is not -1: `input` is an input or iota (a
// node) of the group, `output` the index of an output of the group, `value` the index of a CarriedValue.
struct CarriedEnd {
  NodeId input = -1;
  int output = -1, value = -1;
};

// The work of a block that walks an axis in turns (iterations over its parts): `before` runs once before the turns,
// `place` and then `turn` run in every turn, and `after` runs once after them. `place` copies inputs into the order in
// which `turn` reads them. If `before` or `place` has nothing to do, its graph has no outputs.
struct CarriedParts {
  struct Part {
    Graph graph;
    std::map<std::string, CarriedEnd> ends;  // what each input and output of `graph` stands for, by its name
  };
  Part before, place, turn, after;
  std::vector<CarriedValue> values;
};

// Divides the work of a block into CarriedParts. `slab`: the block's share of one iteration along `axis`. `in_place`:
// inputs are read in the order that they have in memory, as stages with values in registers need it. InvalidArgument,
// with the reason: the group reduces something over the axis that is no multiple of the values of the corrected
// function of x - r.
absl::StatusOr<CarriedParts> carried_parts(const Graph& group, const CarriedAxis& axis, const Slab& slab,
                                           bool in_place = false);

}  // namespace wl

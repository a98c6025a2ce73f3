// Stitching: a group that is not one loop nest, as several nests that each block runs one after the other on its share
// of the group (cover/slab.h). Values that a nest computes for a later one stay in scratch. This is the block
// composition of FusionStitching, for contractions too: softmax(QK')V becomes one kernel, and so do a norm before a
// product and two products with elementwise ops between them. The schedule chooses how many rows a block has; every
// nest has its own choices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// One nest of a block. Buffers are those of its own graph, in call order.
struct Stage {
  struct Buffer {
    int global = -1;             // of the whole group's buffers, in call order; -1: a value in scratch
    int kept = -1;               // position in Stitched::kept
    std::vector<int64_t> shift;  // global: elements per step of each axis' block number, then per turn
  };
  Graph graph;
  Domain domain;
  std::vector<Buffer> buffers;
  std::shared_ptr<const Target> target;  // less the shared memory that values in scratch take at that time
};

// A value in scratch, from the stage that stores it to the last stage that reads it.
struct StitchKept {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  size_t first = 0, last = 0;
  std::optional<double> start = std::nullopt;  // of every element, before the first stage
  // Where >= 0: element i is i plus `counts_step` for each block or turn before this one along that axis. Of a turn: in
  // the stages from `first` on.
  int counts_along = -1;
  int64_t counts_step = 0;
  int becomes = -1;  // the kept value that it is copied to at the end of a turn; -1: none
  int64_t bytes() const { return elements(shape) * size_of(dtype); }
};

struct Stitched {
  int64_t rows = 1;             // of a block, along the axis that the plan cuts
  std::vector<int64_t> counts;  // blocks along each axis
  std::vector<StitchKept> kept;
  std::vector<Stage> stages;
  // In one pass over a reduced axis: the stages [first, last) run `count` times, each time on the next `length`
  // elements of the axis, and what they have reduced so far is kept. length 0: no axis is walked so. The elements that
  // are left, fewer than `length`, are taken by the `rest` stages behind them.
  struct Turns {
    int64_t length = 0, count = 1;
    size_t first = 0, last = 0, rest = 0;
    // The stages from `first` on hand values on in registers (compiler/schedule/held), not in scratch.
    bool held = false;
    // Elements of the axis beyond `base` + `step` * the block's number along `axis` count for nothing in this block,
    // and are not visited. axis -1: all do.
    struct {
      int axis = -1;
      int64_t base = 0, step = 0;
    } visited = {};
  };
  Turns turns = {};
  int64_t blocks() const;  // along all axes
  bool is_held(size_t stage) const { return turns.held && stage >= turns.first; }
  int64_t turns_of(size_t stage) const { return turns.first <= stage && stage < turns.last ? turns.count : 1; }
};

// One for every number of rows that a block may have, and for every length of a turn: those of length 0 first, all with
// the same classes of stages, then those of other lengths, likewise, and last those of other lengths that are held in
// registers. Never empty.
struct Stitch {
  std::vector<Stitched> choices;
};

// The machine as a stage sees it: one thread of a CPU, or one block of a GPU.
Machine stage_machine(const Machine& machine, const Stage& stage);

}  // namespace wl

// Stitching: a group that is no single loop nest, as several nests that a block runs one after the other on its share
// (cover/slab.h), with what they pass on in scratch: FusionStitching's block composition, for contractions too.
// softmax(QK')V is then one kernel, and so are a norm before a product and two products with work between them. How
// many rows a block has is a choice of the plan; every nest keeps its own choices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// One nest of a block. Buffers are those of its own graph, in call order.
struct Stage {
  struct Buffer {
    int global = -1;             // of the whole group's buffers, in call order; -1: passed on
    int kept = -1;               // position in Stitched::kept
    std::vector<int64_t> shift;  // global: elements per step of each axis' block number
  };
  Graph graph;
  Domain domain;
  std::vector<Buffer> buffers;
  std::shared_ptr<const Target> target;  // less the shared memory that passing on takes meanwhile
};

// What stages pass on: from the one that stores it to the last that reads it.
struct StitchKept {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  size_t first = 0, last = 0;
  int64_t bytes() const { return elements(shape) * size_of(dtype); }
};

struct Stitched {
  int64_t rows = 1;             // of a block, along the axis that the plan cuts
  std::vector<int64_t> counts;  // blocks along each axis
  std::vector<StitchKept> kept;
  std::vector<Stage> stages;
  int64_t blocks() const;  // along all axes
};

// For every number of rows that a block may have; all with as many stages, of the same classes. Never empty.
struct Stitch {
  std::vector<Stitched> choices;
};

// The machine as a stage sees it: a block is one thread's, or one block's of a GPU.
Machine stage_machine(const Machine& machine, const Stage& stage);

}  // namespace wl

// Stitching: one kernel for a group that is not one loop nest. Each block runs several loop nests, called stages, one
// after another on its share of the group (its slab, cover/slab/slab.h). Values that one stage computes for a later one
// stay in scratch (shared memory on a GPU, a buffer of the thread on a CPU). This is the block composition of
// FusionStitching, extended to contractions: softmax(QK')V becomes one kernel, and so do a norm before a product, and
// two products with elementwise ops between them. The schedule chooses the number of rows of a block, and makes
// separate choices for each stage.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// One loop nest of a block. A turn is one iteration of the block's loop over a reduced axis (Stitched::Turns).
struct Stage {
  // A buffer of the stage's graph. It is either a buffer of the whole group or a value in scratch.
  struct Buffer {
    int global = -1;  // a buffer of the whole group: its number in call order; -1: a value in scratch
    int kept = -1;    // for a value in scratch: its index in Stitched::kept
    // For a buffer of the whole group, in elements: how far its address moves from one block to the next along each
    // axis of the blocks and, as the last entry if there are turns, from one turn to the next.
    std::vector<int64_t> shift;
  };
  Graph graph;
  Domain domain;
  std::vector<Buffer> buffers;  // the buffers of the stage's graph, in call order
  // The group's target with less shared memory: without the part that kept values take up in this stage.
  std::shared_ptr<const Target> target;
};

// Where a value is between the stage that computes it and those that read it: in scratch; nowhere, as each reader
// computes it again; or in the block's part of a workspace in device memory. The order is that of the choice `level`.
enum class ValueLevel : uint8_t { kScratch, kAgain, kDevice };

// A kept value: a value that lives from the stage that stores it to the last stage that reads it, in scratch or in
// device memory.
struct StitchKept {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  size_t first = 0, last = 0;                  // the first and the last stage that needs the value
  std::optional<double> start = std::nullopt;  // what all elements are set to before the first stage, if anything
  // If counts_along >= 0, the value is part of an iota: element i is i + `counts_step` * (the number of the block along
  // axis `counts_along` of the blocks). If counts_along equals the number of those axes, the number of the turn
  // replaces that of the block, and the value is set again in every turn, for the stages from `first` on.
  int counts_along = -1;
  int64_t counts_step = 0;
  int becomes = -1;        // the kept value that this one is copied to at the end of a turn; -1: it is not copied
  bool in_scratch = true;  // false: it is in device memory
  int64_t bytes() const { return elements(shape) * size_of(dtype); }
};

// One way to stitch a group: how its output is divided among blocks, and the stages that each block runs.
struct Stitched {
  int64_t rows = 1;             // number of rows of a block along the axis that is divided among blocks
  std::vector<int64_t> counts;  // number of blocks along each axis of the grid
  std::vector<StitchKept> kept;
  std::vector<Stage> stages;
  // The levels of values that stages pass on, in the order in which stages would store them in scratch. Values beyond
  // the end of the list are in scratch.
  std::vector<ValueLevel> levels;
  ValueLevel level(size_t value) const { return value < levels.size() ? levels[value] : ValueLevel::kScratch; }
  // The block's loop over a reduced axis. Stages [first, last) run `count` times, each time on the next `length`
  // elements of the axis, and their partial results are kept from turn to turn. length 0: there is no such loop. The
  // next `rest` stages compute the remaining elements of the axis, which are fewer than `length`.
  struct Turns {
    int64_t length = 0, count = 1;
    size_t first = 0, last = 0, rest = 0;
    // Whether values are resident: the stages from `first` on pass them to each other in registers
    // (compiler/schedule/resident) instead of scratch.
    bool resident = false;
    // The elements of the reduced axis after element `base` + `step` * (the block's number along `axis`) do not count
    // in this block, and turns in which no element counts are not run. axis -1: all elements count.
    struct {
      int axis = -1;
      int64_t base = 0, step = 0;
    } visited = {};
  };
  Turns turns = {};
  int64_t blocks() const;  // returns the number of blocks along all axes together
  bool is_resident(size_t stage) const { return turns.resident && stage >= turns.first; }
  int64_t turns_of(size_t stage) const { return turns.first <= stage && stage < turns.last ? turns.count : 1; }
};

// All ways to stitch a group, one for every number of rows of a block and every length of a turn; there is at least
// one. First come the choices without turns (length 0), also one for all levels of values, then those with turns, and
// last those with turns whose values are resident in registers. Within each of these three parts, all choices of equal
// levels have stages of the same classes.
struct Stitch {
  std::vector<Stitched> choices;
};

// Returns the machine for which a stage is scheduled: one thread of a CPU, or one block of a GPU.
Machine stage_machine(const Machine& machine, const Stage& stage);

}  // namespace wl

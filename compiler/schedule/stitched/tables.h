// Tables of the legal schedules of a stitched group's stages. With these tables, legal points of the group's space are
// counted and found without enumerating the space. Only this folder uses them.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

// How an axis of a stage's space appears in the whole space. `teams`, here and below: whether the kernel is for a GPU.
InGroup in_group(const Axis& axis, bool teams);
// Returns the axis of the whole space that stands for a stage's axis.
Axis axis_in_whole(size_t stage, const Axis& axis, bool teams);
// Sets the choices of a GPU's stage that are fixed, or that follow from the threads of a block (`team`). Streaming
// loads are off, because other blocks may read the same values. Operands that are copied asynchronously, or multiplied
// in shared memory, are brought there in the widest vectors.
void complete_stage(const Space& space, int64_t team, Schedule& own);

// Which combinations of values of the whole space's axes are a legal schedule of one stage.
struct StageTable {
  std::vector<size_t> axes;  // indices of the stage's axes in the whole space
  // For each combination of values of these axes, whether it is legal. The number of a combination has the indices of
  // its values as digits in mixed radix; the last axis is the lowest digit.
  std::vector<char> legal;

  // Puts the values of schedule `number` into a point of the whole space, which has the axes `all`.
  void put(size_t number, const std::vector<Axis>& all, Point& point) const {
    for (size_t i = axes.size(); i-- > 0;) {
      const size_t values = all[axes[i]].values.size();
      point[axes[i]] = static_cast<int>(number % values);
      number /= values;
    }
  }
};

// The tables of all stages. A *choice* here is one of the ways to stitch the group (Stitch::choices).
struct Tables {
  std::vector<Axis> axes;
  // For each choice, the indices of its values on the axes that name it: the rows of a block and, where blocks walk
  // an axis in turns, the length of a turn and whether a turn's values are in shared memory or in registers.
  std::vector<std::vector<int>> values;
  std::vector<size_t> shared;               // indices of the axes that stages share
  std::vector<std::vector<StageTable>> of;  // tables for each choice and stage
  std::vector<std::vector<char>> has;       // for each choice and axis: whether a stage has the axis

  // The number of legal points: the sum, over all choices and all values of the shared axes, of the product of the
  // stages' numbers of legal schedules. UINT64_MAX where that is too large.
  uint64_t count() const;

  // Returns a legal point, or an empty point if there is none.
  Point first() const;

  // For each combination of values of the shared axes, the product of the numbers of legal schedules of the stages of a
  // choice; 0 where an axis without effect is not at its first value.
  std::vector<uint64_t> products_of(size_t chosen) const;

  // Sets the axes of a stage, in a point, to the stage's first legal schedule that agrees with the point's values of
  // the shared axes.
  void place_first(const StageTable& stage, Point& point) const;

  // For each combination of values of the shared axes, how many legal schedules of a stage agree with it. A shared axis
  // that the stage lacks agrees with every value.
  std::vector<uint64_t> agreeing(const StageTable& stage) const;

  // The number of combinations of values of the shared axes.
  size_t places() const;

  // Returns the number of the choice that a point names; nullopt if no choice has the point's values on the naming
  // axes.
  std::optional<size_t> choice(const Point& point) const;
  // The point that names a choice and has the first value on all other axes.
  Point start(size_t chosen) const;
  size_t naming() const { return values[0].size(); }  // number of axes that name a choice, which are the first axes

  // Whether an axis has an effect: it is an axis of the whole group, or a stage of the named choice has it. Other axes
  // must be at their first values.
  bool matters(const Point& point, size_t axis) const;
  bool matters(size_t chosen, size_t axis) const;

  bool legal(const Point& point) const;
  // Whether a schedule of the whole group names a choice of which stage number `stage` is legal, or does not exist.
  bool legal(size_t stage, const Schedule& schedule) const;
  // The number of the axis behind the last one that stage number `stage` has in any choice, or that names a choice.
  size_t end_of(size_t stage) const;
};

// Makes the table of a stage. `axes`: the axes of the whole space. `own`: the stage's space, which has no legal
// schedule if it has no seeds.
StageTable table_of(const std::vector<Axis>& axes, size_t stage, const Space& own, bool teams);

}  // namespace wl

// Which schedules of a stitched group's stages are legal under the choices that stages share. For this folder only.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

InGroup in_group(const Axis& axis, bool teams);
// The axis of the whole space that a stage's axis becomes.
Axis axis_in_whole(size_t stage, const Axis& axis, bool teams);
// Sets the choices of a stage that follow from the threads of a block (`team`). Streaming loads are off, since other
// blocks may read the same values; asynchronous copies are off, since they copy from device memory only.
void complete_stage(const Space& space, int64_t team, Schedule& own);

// Which values of the whole space's axes are a legal schedule of one stage.
struct StageTable {
  std::vector<size_t> axes;  // numbers of axes of the whole space
  std::vector<char> legal;   // by the mixed-radix number that their values make

  // Puts the values of schedule `number` into a point of the whole space, which has the axes `all`.
  void put(size_t number, const std::vector<Axis>& all, Point& point) const {
    for (size_t i = axes.size(); i-- > 0;) {
      const size_t values = all[axes[i]].values.size();
      point[axes[i]] = static_cast<int>(number % values);
      number /= values;
    }
  }
};

struct Tables {
  std::vector<Axis> axes;
  // For each choice of how blocks divide the group, the values (as indices) of the axes that name it: the rows of a
  // block and, where blocks walk an axis in turns, the length of a turn and where a turn's values are.
  std::vector<std::vector<int>> values;
  std::vector<size_t> shared;               // numbers of the axes that stages share
  std::vector<std::vector<StageTable>> of;  // by choice and stage
  std::vector<std::vector<char>> has;       // by choice and axis: whether a stage has it

  // The number of legal points: the sum, over all choices and all values of the shared axes, of the product of the
  // stages' numbers of legal schedules. UINT64_MAX where that is too large.
  uint64_t count() const;

  // A legal point; empty: there is none.
  Point first() const;

  // For each combination of values of the shared axes, the product of the stages' numbers of legal schedules.
  std::vector<uint64_t> products_of(const std::vector<StageTable>& stages) const;

  // Sets the point's axes of a stage to the stage's first legal schedule that agrees with the point's values of the
  // shared axes.
  void place_first(const StageTable& stage, Point& point) const;

  // For each combination of values of the shared axes, how many legal schedules of a stage agree with it. A shared axis
  // that the stage lacks agrees with every value.
  std::vector<uint64_t> agreeing(const StageTable& stage) const;

  // The number of combinations of values of the shared axes.
  size_t places() const;

  // The number of the choice that a point names; nullopt where blocks cannot have such rows and turns.
  std::optional<size_t> choice(const Point& point) const;
  Point start(size_t chosen) const;
  size_t naming() const { return values[0].size(); }  // number of axes that name a choice, which are the first ones

  // Whether an axis matters: it is of the whole, or a stage of the named choice has it. Others are at their first
  // values.
  bool matters(const Point& point, size_t axis) const;
  bool matters(size_t chosen, size_t axis) const { return axes[axis].path.empty() || has[chosen][axis] != 0; }

  bool legal(const Point& point) const;
};

// The table of a stage. `axes`: those of the whole space; `own`: the stage's space, which has no legal schedule if it
// has no seeds.
StageTable table_of(const std::vector<Axis>& axes, size_t stage, const Space& own, bool teams);

}  // namespace wl

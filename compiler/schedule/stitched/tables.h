// Which schedules of a stitched group's stages are legal under the choices that stages share. For this folder only.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/space.h"

namespace wl {

InGroup in_group(const Axis& axis, bool teams);
// A stage's axis as one of the whole space.
Axis axis_in_whole(size_t stage, const Axis& axis, bool teams);
// Sets the choices that follow from the threads of a block. Streaming loads are off, since other blocks may read the
// same values; asynchronous copies are off, since they copy from device memory only.
void complete_stage(const Space& space, int64_t team, Schedule& own);

// Which values of the whole's axes are a legal schedule of one stage.
struct StageTable {
  std::vector<size_t> axes;  // of the whole space
  std::vector<char> legal;   // by mixed-radix number of their values

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
  // By choice, the values of the axes that say which it is: of its rows, and where blocks take turns, of the length of
  // these and of where their values are.
  std::vector<std::vector<int>> values;
  std::vector<size_t> shared;               // axes of several stages
  std::vector<std::vector<StageTable>> of;  // by choice and stage
  std::vector<std::vector<char>> has;       // by choice and axis: whether a stage has it

  // The sum over all numbers of rows and all values of the shared axes of the product of each stage's legal schedules.
  uint64_t count() const;

  // A legal point; empty: there is none.
  Point first() const;

  // By value of the shared axes, the product of each stage's legal schedules.
  std::vector<uint64_t> products_of(const std::vector<StageTable>& stages) const;

  // Puts the stage at its first legal schedule that agrees with the point's values of the shared axes.
  void place_first(const StageTable& stage, Point& point) const;

  // By value of the shared axes, how many legal schedules of a stage agree with it; axes that the stage lacks agree
  // with every value.
  std::vector<uint64_t> agreeing(const StageTable& stage) const;

  // How many values the shared axes have together.
  size_t places() const;

  // The choice that a point names; nothing where blocks have no such rows and turns.
  std::optional<size_t> choice(const Point& point) const;
  Point start(size_t chosen) const;
  size_t naming() const { return values[0].size(); }  // axes that name a choice: the first ones

  // Blocks whose stages lack an axis leave it at its first value.
  bool matters(const Point& point, size_t axis) const;
  bool matters(size_t chosen, size_t axis) const { return axes[axis].path.empty() || has[chosen][axis] != 0; }

  bool legal(const Point& point) const;
};

// `axes`: of the whole; `own`: the stage's space. Without seeds it has no legal schedule.
StageTable table_of(const std::vector<Axis>& axes, size_t stage, const Space& own, bool teams);

}  // namespace wl

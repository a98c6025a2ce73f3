// Counts the elements that a kernel loads and stores, by interpreting its loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/var_values.h"

namespace wl::testing {

// Calls visit(instr) each time an instruction of a body runs, with the current values of its loops' variables in
// `vars`.
template <typename Visit>
void each_run(std::span<const Instr> body, VarValues& vars, const Visit& visit) {
  for (const Instr& instr : body) {
    if (instr.op != InstrOp::kLoop) {
      visit(instr);
      continue;
    }
    const int64_t trips = vars.smallest(instr.trips);
    for (int64_t i = 0; i < trips; ++i) {
      vars.set(instr.var, i);
      each_run(instr.body, vars, visit);
    }
  }
}

class TrafficCounter {
 public:
  explicit TrafficCounter(const Kernel& kernel) : kernel_(kernel), vars_(kernel), moved_(kernel.buffers.size(), 0) {}

  std::vector<int64_t> run() {
    for (const Pass& pass : kernel_.passes())
      for (int64_t block = 0; block < kernel_.grid; block += std::max<int64_t>(1, pass.last)) {
        vars_.set(0, block);
        for (int64_t team = 0; team < std::max(1, kernel_.teams); ++team) {
          if (kernel_.wave > 0) vars_.set(kTeamVar, team);
          const std::vector<int64_t> before = moved_;
          stored_ = 0;
          each_run(pass.body, vars_, [&](const Instr& instr) { visit(instr); });
          // A team beyond the last row is not counted: it stores nothing and loads what another team of its block loads
          // as well.
          if (kernel_.wave > 0 && stored_ == 0) moved_ = before;
        }
      }
    return std::move(moved_);
  }

 private:
  // Returns the number of different elements of memory that a load or store accesses. Along an axis of stride 0 there
  // is only one, which all elements of the tile along this axis share.
  int64_t size(const Instr& instr, const Tile& tile) const {
    std::vector<int64_t> extents;
    int64_t total = 1;
    for (size_t axis = 0; axis < tile.layout.shape.size(); ++axis) {
      int64_t extent = tile.layout.shape[axis];
      if (axis < tile.bound.size() && !tile.bound[axis].empty())
        extent = std::clamp<int64_t>(vars_.smallest(tile.bound[axis]), 0, extent);
      const bool spread = info(instr.op).is_indexed() || instr.slice.strides[axis] != 0;
      extents.push_back(spread ? extent : std::min<int64_t>(extent, 1));
      total *= extents.back();
    }
    if (instr.guards.empty()) return total;
    int64_t held = 0;
    for (int64_t flat = 0; flat < total; ++flat) held += holds(instr, extents, flat);
    return held;
  }

  bool holds(const Instr& instr, const std::vector<int64_t>& extents, int64_t flat) const {
    return std::all_of(instr.guards.begin(), instr.guards.end(), [&](const SliceGuard& guard) {
      int64_t at = vars_.value(guard.at), rest = flat;
      for (size_t axis = extents.size(); axis-- > 0;) {
        at += guard.strides[axis] * (rest % extents[axis]);
        rest /= extents[axis];
      }
      return at >= 0 && at < guard.extent;
    });
  }

  void visit(const Instr& instr) {
    if (goes_through_memory(instr)) {
      for (const Instr& part : through_memory(instr)) count(part);
    } else if (info(instr.op).accesses_memory()) {
      count(instr);
    }
  }

  void count(const Instr& instr) {
    const int64_t moved = size(instr, kernel_.tiles[space_tile(instr)]);
    moved_[instr.slice.buffer] += moved;
    if (info(instr.op).stores() && kernel_.buffers[instr.slice.buffer].level != Level::kShared) stored_ += moved;
  }

  const Kernel& kernel_;
  VarValues vars_;
  std::vector<int64_t> moved_;
  int64_t stored_ = 0;  // elements stored by the current team, except to shared memory
};

// Returns how many elements the kernel loads from or stores to each buffer (numbered as in kernel.buffers; shared
// memory included), in all blocks and teams. An element that several threads of a team hold counts once, and one that a
// guard excludes does not count. Takes time in proportion to the executed instructions, and for guarded ones to their
// elements.
inline std::vector<int64_t> elements_moved(const Kernel& kernel) {
  return TrafficCounter(kernel).run();
}

}  // namespace wl::testing

// Walks the memory accesses of a kernel's first thread one by one, as a reference for tests of the reuse analysis.
#pragma once

#include <functional>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/var_values.h"

namespace wl::testing {

// Walks the loops of a kernel's first thread, and calls visit(reference, buffer, element) for every element that a
// load or store touches, in the order of execution. References are numbered in the order of the body.
class Walk {
 public:
  using Visit = std::function<void(int reference, BufferId buffer, int64_t element)>;
  Walk(const Kernel& kernel, Visit visit) : kernel_(kernel), vars_(kernel), visit_(std::move(visit)) {}

  void run() {
    const int64_t blocks = (kernel_.grid + kernel_.threads - 1) / kernel_.threads;
    for (int64_t block = 0; block < blocks; ++block) {
      vars_.set(0, block);
      next_ = 0;
      body(kernel_.body);
    }
  }
  // Walks one iteration of the `loop`-th loop of the body (outermost first, in order), with all loops around it in
  // their first iteration.
  void run_turn(int loop) {
    vars_.set(0, 0);
    next_ = 0;
    wanted_ = loop;
    seen_ = 0;
    find(kernel_.body);
  }

 private:
  int count(const std::vector<Instr>& instrs) const {
    int n = 0;
    for (const Instr& instr : instrs) n += instr.op == InstrOp::kLoop ? count(instr.body) : (touches(instr) ? 1 : 0);
    return n;
  }
  static bool touches(const Instr& instr) { return instr.op == InstrOp::kLoad || instr.op == InstrOp::kStore; }

  bool find(const std::vector<Instr>& instrs) {
    for (const Instr& instr : instrs) {
      if (instr.op != InstrOp::kLoop) {
        next_ += touches(instr) ? 1 : 0;
        continue;
      }
      vars_.set(instr.var, 0);
      if (seen_++ == wanted_) {
        body(instr.body);
        return true;
      }
      if (find(instr.body)) return true;
    }
    return false;
  }

  void body(const std::vector<Instr>& instrs) {
    for (const Instr& instr : instrs) {
      if (instr.op == InstrOp::kLoop) {
        const int64_t trips = vars_.smallest(instr.trips);
        const int first = next_;
        for (int64_t i = 0; i < trips; ++i) {
          vars_.set(instr.var, i);
          next_ = first;
          body(instr.body);
        }
        vars_.set(instr.var, 0);
        next_ = first + count(instr.body);
      } else if (touches(instr)) {
        slice(instr, next_++);
      }
    }
  }

  void slice(const Instr& instr, int reference) {
    const Tile& tile = kernel_.tiles[instr.op == InstrOp::kStore ? instr.args[0] : instr.result];
    std::vector<int64_t> extents;
    int64_t total = 1;
    for (int axis = 0; axis < tile.layout.rank(); ++axis) {
      int64_t extent = tile.layout.shape[axis];
      if (axis < static_cast<int>(tile.bound.size()) && !tile.bound[axis].empty())
        extent = std::clamp<int64_t>(vars_.smallest(tile.bound[axis]), 0, extent);
      extents.push_back(extent);
      total *= extent;
    }
    const int64_t base = vars_.value(instr.slice.offset);
    for (int64_t flat = 0; flat < total; ++flat) {
      int64_t at = base, rest = flat;
      std::vector<int64_t> place(extents.size());
      for (size_t axis = extents.size(); axis-- > 0;) {
        place[axis] = rest % extents[axis];
        at += instr.slice.strides[axis] * place[axis];
        rest /= extents[axis];
      }
      const bool inside = std::all_of(instr.guards.begin(), instr.guards.end(), [&](const SliceGuard& guard) {
        int64_t value = vars_.value(guard.at);
        for (size_t axis = 0; axis < place.size(); ++axis) value += guard.strides[axis] * place[axis];
        return value >= 0 && value < guard.extent;
      });
      if (inside) visit_(reference, instr.slice.buffer, at);
    }
  }

  const Kernel& kernel_;
  VarValues vars_;
  Visit visit_;
  int next_ = 0, wanted_ = 0, seen_ = 0;
};

}  // namespace wl::testing

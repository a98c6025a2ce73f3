// Stitched groups with products of 16-bit floats: random ones, and which of their schedules copy ahead.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/space.h"
#include "compiler/target/matrix.h"
#include "tests/unit/schedule/groups.h"

namespace wl::testing {

// Draws a norm and the product that reads it or, for an odd seed, two products with a function between them. Factors
// are 16-bit floats that are stored along K or across it, and rows of odd lengths, which no copy of whole words may
// read.
inline Graph drawn_stages(uint64_t seed) {
  uint64_t state = seed;
  const auto draw = [&](std::initializer_list<int64_t> of) { return of.begin()[split_mix(state) % of.size()]; };
  Builder out;
  const DType type = draw({0, 1}) == 0 ? DType::bf16 : DType::f16;
  const int64_t rows = draw({64, 128, 96}), depth = draw({64, 128, 192, 136}), columns = draw({64, 128, 72, 65});
  const auto product = [&](NodeId left, int64_t k, int64_t n, const char* name) {
    const bool turned = draw({0, 1}) == 0;
    const NodeId right = out.input(name, type, turned ? Shape{n, k} : Shape{k, n});
    return out.contract(left, right, turned ? "mk,nk->mn" : "mk,kn->mn", type);
  };
  NodeId value = out.input("x", type, {rows, depth});
  if (seed % 2 != 0) {
    const int64_t between = draw({64, 128, 80});
    value = out.elementwise(Op::tanh, {product(value, depth, between, "a")});
    out.output("y", product(value, between, columns, "b"));
    return out.finish().value();
  }
  const NodeId wide = out.cast(value, DType::f32);
  const NodeId squares = out.reduce(Op::reduce_sum, out.mul(wide, wide), {1});
  const NodeId scale = out.elementwise(Op::rsqrt, {out.add(squares, out.constant_like(1, squares))});
  const NodeId scaled = out.mul(wide, out.broadcast(scale, {rows, depth}, {0}));
  out.output("y", product(out.cast(scaled, type), depth, columns, "w"));
  return out.finish().value();
}

// What the stages of a point choose.
struct StageChoices {
  bool copies = false, in_memory = false;
};
inline StageChoices stages_of(const Space& space, const Point& point) {
  StageChoices out;
  for (size_t i = 0; i < space.axes.size(); ++i) {
    const Axis& axis = space.axes[i];
    const int64_t value = axis.values[static_cast<size_t>(point[i])];
    if (axis.choice == kAsyncCopies) out.copies = out.copies || value != 0;
    if (axis.choice == kMatrix && value != kNoMatrix)
      out.in_memory = out.in_memory || multiplies_in_memory(matrices()[static_cast<size_t>(value - 1)].op);
  }
  return out;
}

// Returns up to `count` of `drawn` points, from the last one on, whose stages copy asynchronously and, as `in_memory`
// says, multiply in shared memory or not.
inline std::vector<Point> copying_points(const Space& space, const std::vector<Point>& drawn, size_t count,
                                         bool in_memory) {
  std::vector<Point> out;
  for (size_t i = drawn.size(); i-- > 0 && out.size() < count;)
    if (const StageChoices choices = stages_of(space, drawn[i]); choices.copies && choices.in_memory == in_memory)
      out.push_back(drawn[i]);
  return out;
}

// Returns up to `count` drawn points of each of both kinds of copying_points(); the seeds are drawn last.
inline std::vector<Point> drawn_copying_points(const Space& space, int draws, size_t count, uint64_t seed) {
  const std::vector<Point> drawn = sample_points(space, draws, seed);
  std::vector<Point> out = copying_points(space, drawn, count, false);
  for (Point& point : copying_points(space, drawn, count, true)) out.push_back(std::move(point));
  return out;
}

// Returns `points` with waves that only copy, as vectors or (`boxes`) as boxes, where that is legal.
inline std::vector<Point> with_copying_waves(const Space& space, std::vector<Point> points, bool boxes) {
  if (axis_of(space.axes, kCopyingWaves) == nullptr) return {};
  for (Point& point : points) {
    set_choice(space, point, kCopyingWaves, 4);
    set_choice(space, point, kTma, boxes ? 1 : 0);
  }
  std::erase_if(points, [&](const Point& point) { return !space.is_legal(point); });
  return points;
}

}  // namespace wl::testing

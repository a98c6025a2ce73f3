// Functions by which tests select some of a space's legal points.
#pragma once

#include <functional>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/schedule/space.h"

namespace wl::testing {

// Draws `count` points, possibly with repetitions, from the `wanted` points of a space. Returns none if none is wanted.
inline std::vector<Point> drawn_points(const Space& space, size_t count, uint64_t seed,
                                       const std::function<bool(const Point&)>& wanted) {
  std::vector<Point> all, out;
  space.enumerate([&](const Point& point) {
    if (wanted(point)) all.push_back(point);
    return true;
  });
  while (out.size() < count && !all.empty()) out.push_back(all[split_mix(seed) % all.size()]);
  return out;
}

// Returns the seeds of a space, and about `count` points spread evenly over its first `most` points.
inline std::vector<Point> spread_points(const Space& space, uint64_t count, uint64_t most) {
  std::vector<Point> out = space.seeds;
  const uint64_t stride = space.count(most) / count + 1;
  uint64_t at = 0;
  space.enumerate([&](const Point& point) {
    if (at++ % stride == stride / 2) out.push_back(point);
    return at < most;
  });
  return out;
}

}  // namespace wl::testing

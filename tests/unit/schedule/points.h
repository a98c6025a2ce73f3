// Points of a space that tests choose among all legal ones.
#pragma once

#include <functional>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/schedule/space.h"

namespace wl::testing {

// Draws `count` points of a space from those that are `wanted`; none if there are none. A point may be drawn twice.
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

// Returns the seeds of a space, and about `count` of its first `most` points, evenly spread.
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

// Machines whose blocks have little shared memory, and points of stitched spaces with other levels of values than
// scratch.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/schedule/stitched/stitched.h"
#include "compiler/target/target.h"
#include "tests/unit/schedule/groups.h"

namespace wl::testing {

// A machine whose blocks have `bytes` of shared memory, so that small values are offered device memory.
struct SmallBlocks {
  SmallBlocks(const Machine& of, int64_t bytes) : target(*of.target), machine(of) {
    target.gpu.block_shared = bytes;
    machine.target = &target;
  }
  SmallBlocks(const SmallBlocks&) = delete;
  Target target;
  Machine machine;
};

// Returns up to `most` points of every way to stitch the group in which a value has another level than scratch: seeds
// and drawn points.
inline std::vector<Point> points_of_levels(const Space& space, const Stitch& stitch, size_t most) {
  std::map<const Stitched*, std::vector<Point>> found;
  std::vector<Point> points = space.seeds;
  for (Point& point : sample_points(space, 100, 7)) points.push_back(std::move(point));
  std::vector<Point> out;
  for (const Point& point : points) {
    const Stitched* const choice = named_choice(stitch, space.schedule(point));
    const auto other = [](ValueLevel level) { return level != ValueLevel::kScratch; };
    if (choice == nullptr || std::none_of(choice->levels.begin(), choice->levels.end(), other)) continue;
    std::vector<Point>& known = found[choice];
    if (known.size() >= most || std::find(known.begin(), known.end(), point) != known.end()) continue;
    known.push_back(point);
    out.push_back(point);
  }
  return out;
}

}  // namespace wl::testing

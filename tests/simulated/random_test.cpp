// Random fused groups with random plans: their kernels for GPUs run on the simulated GPU and are compared with the
// oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/cover/cover.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/random_group.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

// Targets with waves of 32 and 64, and with shared memory of 64 KB and more.
const char* const kRows[] = {"cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx1100", "cuda:sm_75"};

class SimulatedFuzz : public testing::Sharded {
 protected:
  // Adds the group's kernels at `points` random schedules of its space, or at one of its seeds if `points` is 0.
  // Returns false if it added no kernel; it adds none for a contraction.
  bool add(const Graph& group, const Machine& machine, int points, uint64_t seed) {
    const auto domain = analyze(group, machine);
    EXPECT_TRUE(domain.ok()) << domain.status() << "\n" << print(group);
    if (!domain.ok() || domain->cls == LoopClass::kContract) return false;
    const Space space = space_of(group, *domain, machine).value();
    std::vector<Point> chosen = testing::sample_points(space, points, seed);
    if (points == 0) chosen = {chosen[seed % chosen.size()]};
    const size_t kept = std::min<size_t>(chosen.size(), std::max(1, points));
    chosen.erase(chosen.begin(), chosen.end() - static_cast<std::ptrdiff_t>(kept));
    int number = -1;
    for (const Point& point : chosen) {
      const std::string plan = space.text(point);
      const auto kernel = lower(group, *domain, space.schedule(point), machine);
      if (absl::IsUnimplemented(kernel.status())) {
        std::printf("not lowered: %s\n", kernel.status().ToString().c_str());
        ++missing_;
        continue;
      }
      EXPECT_TRUE(kernel.ok()) << kernel.status() << print(group) << plan;
      if (!kernel.ok()) continue;
      const auto source = testing::simulated(*kernel, machine);
      EXPECT_TRUE(source.ok()) << source.status() << print(group) << plan;
      if (!source.ok()) continue;
      if (number < 0) {
        const auto added = checks_.group(group, seed);
        EXPECT_TRUE(added.ok()) << added.status() << print(group);
        if (!added.ok()) return false;
        number = *added;
      }
      checks_.add(number, *source, plan);
    }
    return number >= 0;
  }
  void run() {
    checks_.expect_right();
    EXPECT_EQ(missing_, 0);
  }

  testing::CompiledChecks checks_{"simulated_fuzz"};
  int missing_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Shards, SimulatedFuzz, ::testing::Range(0, testing::kShards));

// Tests seeds of the spaces and randomly drawn schedules.
TEST_P(SimulatedFuzz, RandomGroupsMeanTheirGraphs) {
  const auto [first, last] = seeds(100, 20260601);
  std::set<std::string> seen;
  int groups = 0;
  uint64_t seed = first * 64;
  for (const uint64_t wanted = last - first; static_cast<uint64_t>(groups) < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(kRows[seed % std::size(kRows)]);
    // Even seeds draw a group that suits GPUs, odd seeds a general graph, whose fused groups are tested.
    const Graph graph = seed % 2 == 0 ? testing::random_group(seed)
                                      : random_graph(seed, {.nodes = 14, .largest = 6000, .f32_only = seed % 3 != 0});
    const auto cover = cover_greedy(graph, machine);
    ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(graph);
    for (const Group& group : cover->groups) {
      if (group.ops.size() < 2) continue;
      const Graph extracted = extract(graph, group);
      if (!seen.insert(graph_hash(extracted)).second) continue;
      groups += add(extracted, machine, static_cast<int>(seed / 2 % 2), seed) ? 1 : 0;
      if (HasFailure()) return;
    }
  }
  std::printf("%d groups, %d kernels\n", groups, checks_.kernels());
  run();
}

TEST_P(SimulatedFuzz, RandomPlansMeanTheirGraphs) {
  const auto [first, last] = seeds(100, 20260701);
  const auto wanted = static_cast<int>(last - first);
  for (uint64_t seed = first * 64; checks_.kernels() < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(kRows[seed % std::size(kRows)]);
    const Graph graph = testing::random_group(seed);
    const auto cover = cover_greedy(graph, machine);
    ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(graph);
    for (const Group& group : cover->groups) {
      if (group.ops.size() > 1) add(extract(graph, group), machine, 4, seed);
      if (HasFailure()) return;
    }
  }
  std::printf("%d plans\n", checks_.kernels());
  run();
}

}  // namespace
}  // namespace wl

// Random products with random plans that use no matrix instructions, for GPUs with and without asynchronous copies and
// with waves of 32 and 64 threads. Their kernels run on the simulated GPU and are compared with the oracle, for every
// number of stages in shared memory and in registers.
#include <gtest/gtest.h>

#include <map>

#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

const char* const kProductRows[] = {"cuda:sm_80", "hip:gfx90a", "cuda:sm_90a", "hip:gfx942", "hip:gfx1100"};

class SimulatedProducts : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, SimulatedProducts, ::testing::Range(0, testing::kShards));

TEST_P(SimulatedProducts, OfRandomPlansMeanTheirGraphs) {
  const auto [first, last] = seeds(80, 20261126);
  testing::CompiledChecks checks("simulated_products");
  const auto wanted = static_cast<int>(last - first);
  // number of kernels, by their numbers of stages in shared memory and in registers
  std::map<std::pair<int64_t, int64_t>, int> drawn;
  for (uint64_t seed = first * 64; checks.kernels() < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(kProductRows[seed % std::size(kProductRows)]);
    const Graph graph = parse(testing::ContractionText(seed, 60'000).text()).value();
    const Domain domain = analyze(graph, machine).value();
    if (domain.cls != LoopClass::kContract) continue;
    const Space space = space_of(graph, domain, machine).value();
    std::vector<Point> points = testing::sample_points(space, 6, seed);
    std::erase_if(points, [&](const Point& point) { return space.schedule(point)[kMatrix] != kNoMatrix; });
    if (points.empty()) continue;
    const auto number = checks.group(graph, seed);
    ASSERT_TRUE(number.ok()) << number.status();
    for (const Point& point : {points.front(), points.back()}) {
      const Schedule schedule = space.schedule(point);
      const auto kernel = lower(graph, domain, schedule, machine);
      if (absl::IsUnimplemented(kernel.status())) continue;  // elementary functions of f64 are not implemented on GPUs
      ASSERT_TRUE(kernel.ok()) << kernel.status() << space.text(point);
      const auto source = testing::simulated(*kernel, machine);
      ASSERT_TRUE(source.ok()) << source.status() << space.text(point);
      checks.add(*number, *source, space.text(point));
      ++drawn[{schedule[kStages], schedule[kRegisterStages]}];
    }
  }
  for (const auto& [stages, kernels] : drawn)
    std::printf("%d kernels of %d stages, %d in registers\n", kernels, static_cast<int>(stages.first),
                static_cast<int>(stages.second));
  checks.expect_right();
}

}  // namespace
}  // namespace wl

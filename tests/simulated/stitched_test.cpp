// Compiles and runs kernels of stitched groups: those for this machine's CPU, and those for GPUs on the simulated GPU.
#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/random_group.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

TEST(StitchedCode, MeansItsGraph) {
  testing::CompiledChecks checks("stitched");
  std::vector<Machine> machines = {testing::machine_with("cuda:sm_80"), testing::machine_with("hip:gfx90a")};
  machines.push_back(testing::machine_named(testing::runnable_targets().back()));
  for (const Machine& machine : machines) {
    for (const char* text : testing::kStitched) {
      const Graph group = parse(text).value();
      const Domain domain = analyze_group(group, machine).value();
      ASSERT_EQ(domain.cls, LoopClass::kStitched);
      const Space space = space_of(group, domain, machine).value();
      const int number = checks.group(group).value();
      std::vector<Point> points = testing::sample_points(space, 2, 3);
      points.erase(points.begin() + 1, points.end() - 1);
      for (const Point& point : testing::sampled(points, checks.kernels())) {
        const auto kernel = lower(group, domain, space.schedule(point), machine);
        ASSERT_TRUE(kernel.ok()) << kernel.status() << text << space.text(point);
        const auto source = testing::simulated(*kernel, machine);
        ASSERT_TRUE(source.ok()) << source.status() << text << space.text(point);
        checks.add(number, *source, space.text(point));
      }
    }
  }
  checks.expect_right();
}

}  // namespace
}  // namespace wl

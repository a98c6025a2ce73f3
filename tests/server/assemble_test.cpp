// The kernels of a whole graph are chosen from stored records alone.
#include <gtest/gtest.h>

#include "compiler/base/records.h"
#include "server/jobs/job_plan.h"
#include "tests/server/fakes.h"

namespace wl {
namespace {

constexpr char kTwoOps[] = R"(graph {
  %0 = input "x" : f32[64,32] normal(0,1)
  %1 = exp %0 : f32[64,32]
  %2 = tanh %1 : f32[64,32]
  output "y" %2
}
)";

struct Choice {
  std::vector<int64_t> fused, part;  // samples in ns of the fused kernel and of each part
  size_t launches;
};

TEST(Chooser, ComparesKernelsByTheirLeastDisturbedSamples) {
  const FakeCompiler compiler;
  const auto plan = make_plan(kTwoOps, {}, fake_device(), compiler);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const auto& [fused, part, launches] : {
           Choice{{1000, 1000, 1000}, {600, 600, 600}, 1}, Choice{{1000, 1000, 1000}, {400, 400, 400}, 2},
           Choice{{1000, 1000, 1900}, {600, 600, 600}, 1},   // the fused kernel was timed while other load ran
           Choice{{1000, 1000, 1000}, {400, 400, 1900}, 2},  // the parts were timed while other load ran
       }) {
    Records records;
    for (const PlannedGroup& group : plan->groups) records[group.key].samples_ns = group.fused_count > 0 ? fused : part;
    const auto chosen = choose_launches(*plan, records);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->size(), launches) << median_of(fused) << " against parts of " << median_of(part);
  }
}

// Reports show medians, so a fused kernel is not chosen if its median is above the sum of the medians of the default
// kernels that the fused kernel replaces.
TEST(Chooser, KeepsNoFusedKernelThatIsSlowerThanTheDefaultOnes) {
  const FakeCompiler compiler;
  const auto plan = make_plan(kTwoOps, {}, fake_device(), compiler);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const auto& [fused, part, launches] : {Choice{{990, 990, 1010, 1010, 1010}, {500, 500, 500}, 2},
                                              Choice{{990, 990, 995, 995, 995}, {500, 500, 500}, 1}}) {
    Records records;
    for (const PlannedGroup& group : plan->groups) {
      records[group.key].samples_ns = group.fused_count > 0 ? fused : part;
      records[group.key].default_samples_ns = part;
    }
    const auto chosen = choose_launches(*plan, records);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->size(), launches) << median_of(fused) << " against parts of " << median_of(part);
  }
}

}  // namespace
}  // namespace wl

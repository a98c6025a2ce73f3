// The kernels of a whole graph are chosen from stored records alone, and covers are compared by samples that agree.
#include <gtest/gtest.h>

#include "compiler/base/records.h"
#include "server/jobs/job_plan.h"
#include "server/jobs/whole.h"
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

Trial samples(std::vector<int64_t> ns) {
  Trial trial = took(0);
  trial.plan = cat("p", ns.front(), ns.size());
  trial.samples_ns = std::move(ns);
  return trial;
}

// A cover's time is confirmed if a few of its fastest samples are close to each other. Neither its other samples
// matter, nor the samples of covers that cannot win.
TEST(WholeCovers, AreConfirmedByFewSamplesThatAreClose) {
  const Trial calm = samples({1000, 1010, 1020, 1025, 2000, 2000, 2000, 2000, 2000});
  const Trial busy = samples({1010, 1010, 1100, 1900, 1300, 2000, 2000, 2000, 2000});
  const Trial slow = samples({2000, 2500, 3000, 3500, 4000, 4500, 5000, 5500, 6000});
  Trial crashed;
  crashed.outcome = Outcome::kRuntimeError;
  EXPECT_FALSE(were_disturbed({calm, samples({1100, 1110, 1120, 1125, 2000, 3000})}));
  EXPECT_TRUE(were_disturbed({calm, busy}));
  EXPECT_FALSE(were_disturbed({calm, slow})) << "it is twice as slow";
  EXPECT_FALSE(were_disturbed({busy, slow})) << "one is left";
  EXPECT_FALSE(were_disturbed({samples({1000, 1005, 1010}), samples({1010, 1020, 1800})})) << "few, and close";
  EXPECT_FALSE(were_disturbed({busy, crashed}));
}

}  // namespace
}  // namespace wl

// The drawing and explanation of a job's result show the kernels that it launches: compose() makes one graph of the
// kernels' graphs, and each kernel is a group of this graph again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "compiler/base/splitmix.h"
#include "compiler/ir/compose/compose.h"
#include "compiler/ir/text.h"
#include "server/jobs/job_plan.h"
#include "tests/planning/networks.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

Device some_device() {
  Device device;
  device.target = "cpu:avx512";
  device.name = "nominal";
  device.threads = 8;
  device.l2_bytes = 2 << 20;
  device.compilers = {"gcc"};
  return device;
}

// Returns the result of a job whose kernels have random times, drawn from `state`, so that kernels of several covers
// are chosen.
absl::StatusOr<JobResult> result_of(const Graph& graph, const std::string& cover, uint64_t& state) {
  TuneOptions options;
  options.cover = cover;
  WL_ASSIGN_OR_RETURN(const JobPlan plan, make_plan(print(graph), options, some_device(), warploom_compiler()));
  Records records;
  for (const PlannedGroup& group : plan.groups) {
    KernelRecord& record = records[group.key];
    record.plan = "plan of " + group.key;
    record.samples_ns = record.default_samples_ns = {static_cast<int64_t>(1000 + split_mix(state) % 9000)};
  }
  return assemble(plan, records, {});
}

class Drawn : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Covers, Drawn, ::testing::Values("stitched", "planned", "channels-last", "one-per-op"));

TEST_P(Drawn, IsWhatIsLaunched) {
  const Machine machine = machine_of(some_device()).value();
  const uint64_t first = testing::test_seed(1), count = static_cast<uint64_t>(testing::scaled(60));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    uint64_t state = seed;
    const auto result = result_of(testing::random_network(seed), GetParam(), state);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto whole = compose(*result);
    ASSERT_TRUE(whole.ok()) << whole.status();
    ASSERT_EQ(whole->launches.size(), result->steps.size());
    const auto said = explain(*whole, machine);
    ASSERT_TRUE(said.ok()) << said.status() << "\n" << print(whole->graph);
    EXPECT_THAT(said->text,
                ::testing::StartsWith(cat("# ", result->steps.size(),
                                          result->steps.size() == 1 ? " kernel" : " kernels", " instead of ")));
    EXPECT_FALSE(std::regex_search(said->text, std::regex("not one kernel: [^\n]*%"))) << said->text;
    const Cover cover = cover_of(*whole);
    for (size_t i = 0; i < result->steps.size(); ++i) {
      const std::string& launched = result->groups[result->steps[i].group].graph;
      EXPECT_EQ(print(extract(whole->graph, cover.groups[i])), launched) << "step " << i << " of\n"
                                                                         << print(whole->graph);
      EXPECT_THAT(said->text, HasSubstr(cat("\ng", i, ": ")));
    }
  }
}

}  // namespace
}  // namespace wl

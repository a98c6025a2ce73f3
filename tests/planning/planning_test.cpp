// Tests that planning ends within a bounded number of steps. Planning means the plan of a network and, for each of its
// groups, the space, a first kernel and the next proposals. Steps and not seconds are counted, so that no test depends
// on how busy the machine is; a million steps take about a second. bench/planning/planning.cpp measures the seconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/base/splitmix.h"
#include "compiler/import/import.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/space.h"
#include "server/jobs/job_plan.h"
#include "tests/planning/networks.h"
#include "tests/unit/file_text.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

constexpr uint64_t kMostSteps = 20'000'000;
constexpr int64_t kNetworks = 400, kMostNetworks = 2000;
// The smallest number of networks that a run plans at any test scale. Sanitizers take minutes for a network.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kFewestNetworks = 1;
#else
constexpr int64_t kFewestNetworks = 100;
#endif
// Number of tests among which the networks are divided; each takes minutes with all targets.
constexpr uint64_t kParts = 32;
constexpr size_t kModelTargets = 1;  // number of targets of each exported model at a scale below 1

Device device_of(const Target& target, int threads) {
  Device device;
  device.target = target.name;
  device.name = "nominal";
  device.threads = target.is_gpu() ? target.gpu.units : threads;
  device.l2_bytes = target.is_gpu() ? target.gpu.l2_bytes : 2 << 20;
  device.compilers = {"gcc", "clang"};
  return device;
}

std::vector<const Target*> all_targets() {
  std::vector<const Target*> out;
  for (const Target& target : targets()) out.push_back(&target);
  return out;
}

// Returns all targets if the test's scale is 1 or more; otherwise the CPU and the GPU target that `turn` selects.
std::vector<const Target*> some_targets(uint64_t turn) {
  const std::vector<const Target*> all = all_targets();
  if (testing::test_scale() >= 1) return all;
  std::vector<const Target*> cpus, gpus;
  for (const Target* target : all) (target->is_gpu() ? gpus : cpus).push_back(target);
  return {cpus[turn % cpus.size()], gpus[turn % gpus.size()]};
}

// Expects that planning the graph takes at most `most` steps, and that every group has a first kernel. A group may be
// refused as unimplemented if it can be split into parts.
void expect_planned(const std::string& graph, const Device& device, const std::string& cover, uint64_t most) {
  TuneOptions options;
  options.cover = cover;
  Work work;
  const absl::StatusOr<JobPlan> plan = make_plan(graph, options, device, warploom_compiler(), {}, &work);
  EXPECT_LE(work.steps(), most) << device.target;
  ASSERT_TRUE(plan.ok()) << device.target << ": " << plan.status();
  for (const PlannedGroup& group : plan->groups) {
    const auto opened = warploom_compiler().open(group.graph, plan->machine);
    if (!opened.ok()) {
      // A fused group may be refused, since its parts are then used in its place. A group that is a part must have a
      // kernel.
      EXPECT_EQ(group.part_count, 0) << device.target << ": " << opened.status() << "\n" << group.text;
      EXPECT_TRUE(absl::IsUnimplemented(opened.status())) << opened.status();
      continue;
    }
    std::vector<PlanOutcome> trials;
    for (const std::string& seed : (*opened)->seeds())
      trials.push_back({seed, true, 1000 + 10 * static_cast<double>(trials.size()), {}});
    ASSERT_FALSE(trials.empty()) << group.text;
    EXPECT_TRUE((*opened)->generate(trials[0].plan).ok())
        << device.target << ": " << trials[0].plan << ": " << (*opened)->generate(trials[0].plan).status() << "\n"
        << group.text;
    (void)(*opened)->propose("portfolio", trials, 8, 1);
    (void)(*opened)->space_text();
  }
}

// Whether a group stores each value once and copies none, which are the groups that searches in the background leave
// out.
bool stores_each_once(const Graph& group) {
  std::set<NodeId> stored;
  return std::all_of(group.outputs.begin(), group.outputs.end(), [&](const Output& output) {
    return group.nodes[output.node].op != Op::input && stored.insert(output.node).second;
  });
}

// Expects that the graph of each group is planned as one kernel of the same key, as searches in the background need.
void expect_groups_alone(const std::string& graph, const Device& device) {
  const absl::StatusOr<JobPlan> plan = make_plan(graph, {}, device, warploom_compiler());
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlannedGroup& group : plan->groups) {
    if (!warploom_compiler().open(group.graph, plan->machine).ok() || !stores_each_once(group.graph)) continue;
    TuneOptions options;
    options.cover = "one-kernel";
    const absl::StatusOr<JobPlan> alone = make_plan(group.text, options, device, warploom_compiler());
    ASSERT_TRUE(alone.ok()) << alone.status() << group.text;
    const std::vector<PlannedLaunch>& launches = alone->levels[0].launches;
    ASSERT_EQ(launches.size(), 1u) << group.text;
    EXPECT_EQ(alone->groups[launches[0].group].key, group.key) << group.text;
  }
}

class Planning : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Returns the range of seeds of this part's share of `all` networks: the first seed, and the one after the last.
  static std::pair<uint64_t, uint64_t> seeds(int64_t all) {
    const uint64_t first = testing::test_seed(1), count = static_cast<uint64_t>(all), part = GetParam();
    return {first + count * part / kParts, first + count * (part + 1) / kParts};
  }
};
INSTANTIATE_TEST_SUITE_P(Parts, Planning, ::testing::Range<uint64_t>(0, kParts));

TEST_P(Planning, OfRandomNetworksEnds) {
  const auto [first, last] = seeds(std::clamp(testing::scaled(kNetworks), kFewestNetworks, kMostNetworks));
  for (uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string graph = print(testing::random_network(seed));
    for (const Target* target : some_targets(seed))
      expect_planned(graph, device_of(*target, 1 << (seed % 7)), seed % 3 == 0 ? "planned" : "stitched", kMostSteps);
  }
}

TEST_P(Planning, GroupsArePlannedAlone) {
  const auto [first, last] = seeds(std::clamp(testing::scaled(kNetworks), kFewestNetworks, kMostNetworks));
  for (uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_groups_alone(print(testing::random_network(seed)), device_of(targets()[0], 2));
  }
}

// After the caller has cancelled, planning does little more work and returns the caller's status.
TEST_P(Planning, EndsWithItsCaller) {
  const auto [first, last] = seeds(testing::scaled(4 * kParts));
  for (uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string graph = print(testing::random_network(seed));
    uint64_t state = seed;
    const std::vector<const Target*> all = all_targets();
    const Target& target = *all[split_mix(state) % all.size()];
    TuneOptions options;
    options.cover = seed % 2 == 0 ? "planned" : "stitched";
    uint64_t looks = 0, going = split_mix(state) % 200;
    const auto gone = [&] { return ++looks > going ? absl::CancelledError("gone") : absl::OkStatus(); };
    Work work(gone);
    const auto plan = make_plan(graph, options, device_of(target, 8), warploom_compiler(), {}, &work);
    if (looks <= going) {
      EXPECT_TRUE(plan.ok()) << plan.status();
      continue;
    }
    EXPECT_TRUE(absl::IsCancelled(plan.status())) << plan.status();
    EXPECT_LE(work.steps(), (going + 1) * 1200 + 100'000);
  }
}

TEST(PlanningOf, AGraphThatTakesTooLongIsRefused) {
  const std::string graph = print(testing::random_network(5));
  Work work({}, 100);
  const auto plan = make_plan(graph, {}, device_of(targets()[0], 8), warploom_compiler(), {}, &work);
  EXPECT_TRUE(absl::IsResourceExhausted(plan.status())) << plan.status();
}

void expect_models_planned(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path());
    const absl::StatusOr<Imported> imported = import_onnx(testing::file_text(entry.path()));
    ASSERT_TRUE(imported.ok()) << imported.status();
    const std::string graph = print(imported->graph);
    std::vector<const Target*> on = all_targets();
    std::rotate(on.begin(), on.begin() + static_cast<std::ptrdiff_t>(graph.size() % on.size()), on.end());
    if (testing::test_scale() < 1) on.resize(kModelTargets);
    for (const Target* target : on) expect_planned(graph, device_of(*target, 16), "stitched", 2 * kMostSteps);
  }
}

// This network has stitched groups for which, on some machines, none of the schedules that are tried first is legal.
TEST(PlanningOf, APlainNetworkOfConvolutionsEnds) {
  const std::string graph = testing::file_text(WARPLOOM_SOURCE_DIR "/tests/planning/cnn_batch8.graph");
  for (const char* target : {"cpu:amx", "cpu:avx2", "cuda:sm_90a"})
    for (const int threads : {2, 16})
      expect_planned(graph, device_of(**target_named(target), threads), "stitched", kMostSteps);
}

// A stitched group whose values and scratch fit into the shared memory of a block only if they are placed in the right
// order.
TEST(PlanningOf, AGroupThatFillsSharedMemoryHasAKernel) {
  const std::string graph = testing::file_text(WARPLOOM_SOURCE_DIR "/tests/planning/fills_shared.graph");
  expect_planned(graph, device_of(**target_named("sim:cuda"), 8), "stitched", kMostSteps);
}

// A space with a billion points, none of which is legal.
TEST(PlanningOf, ASpaceWithoutALegalPointEnds) {
  Machine machine;
  machine.target = &targets()[0];
  int64_t looked = 0;
  Space space;
  space.kind = "map";
  for (int i = 0; i < 9; ++i) space.axes.emplace_back(cat("a", i), std::vector<int64_t>(10, i));
  space.legal_point = [&](const Point&) { return ++looked < 0; };
  EXPECT_TRUE(finished(space, machine).seeds.empty());
  EXPECT_LE(looked, 1'000'000);
  looked = 0;
  space.first = [&] { return Point(9, 0); };
  EXPECT_EQ(finished(space, machine).seeds, std::vector<Point>{Point(9, 0)});
  EXPECT_EQ(looked, 0) << "no walk where one legal point is known";
}

TEST(PlanningOf, ExportedModelsEnds) {
  expect_models_planned(WARPLOOM_SOURCE_DIR "/tests/data");
}

TEST(PlanningOf, LargeExportedModelsEnds) {
  const std::string folder = WARPLOOM_SOURCE_DIR "/../shared/data/models";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  expect_models_planned(folder);
}

}  // namespace
}  // namespace wl

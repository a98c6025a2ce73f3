// Every group of the model files that has no contraction, for three GPU targets: its kernels compile, and run on the
// simulated GPU at reduced extents. The files are those of tests/data; the long run uses all models (WARPLOOM_MODELS,
// or the folder beside the tree).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "compiler/cover/cover.h"
#include "compiler/emit/emit.h"
#include "compiler/import/import.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/file_text.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/gpu/code.h"

namespace wl {
namespace {

std::vector<std::filesystem::path> models_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the distinct groups of the files that have no contraction, by key.
std::map<std::string, Graph> groups_of(const std::vector<std::filesystem::path>& files, const Machine& machine) {
  std::map<std::string, Graph> groups;
  for (const std::filesystem::path& path : files) {
    const auto imported = import_onnx(testing::file_text(path));
    EXPECT_TRUE(imported.ok()) << path << imported.status();
    const Graph graph = simplify(imported->graph).value();
    for (const auto& cover : {cover_greedy(graph, machine), cover_one_per_op(graph, machine)}) {
      EXPECT_TRUE(cover.ok()) << path << cover.status();
      for (const Group& group : cover->groups) {
        Graph extracted = extract(graph, group);
        const auto domain = analyze(extracted, machine);
        EXPECT_TRUE(domain.ok()) << path << domain.status() << print(extracted);
        if (domain.ok() && domain->cls != LoopClass::kContract) groups.emplace(graph_hash(extracted), extracted);
      }
    }
  }
  return groups;
}

constexpr int kParts = 4;  // number of parts into which the groups of all models are divided, one test for each part

// The parameters are a target and the index of the part of the groups that the test checks.
class ModelGroups : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void check(const std::vector<std::filesystem::path>& files, int points, int parts) {
    const std::string target = std::get<0>(GetParam());
    const int part = std::get<1>(GetParam());
    const Machine machine = testing::machine_named(target);
    const std::string missing = gpu_compiler_missing(target);
    if (!missing.empty()) std::printf("not compiled: %s\n", missing.c_str());
    const Scratch scratch;
    std::map<std::string, Graph> groups = groups_of(files, machine);
    int number_of = 0;
    std::erase_if(groups, [&](const auto&) { return number_of++ % parts != part; });
    testing::CompiledChecks checks("models_simulated");
    int compiled = 0, plans = 0;
    int64_t largest = 0;
    std::map<std::string, int> known;  // index in `checks` of each reduced group, by the group's text
    for (const auto& [key, group] : groups) {
      SCOPED_TRACE(print(group));
      const Domain domain = analyze(group, machine).value();
      const Space space = space_of(group, domain, machine).value();
      std::vector<Point> chosen = {space.seeds.at(0)};
      if (points > 0) chosen = testing::sample_points(space, points, std::hash<std::string>{}(key));
      for (size_t i = 0; i < chosen.size(); ++i) {
        const std::string plan = space.text(chosen[i]);
        SCOPED_TRACE(plan);
        ++plans;
        const auto kernel = lower(group, domain, space.schedule(chosen[i]), machine);
        EXPECT_TRUE(kernel.ok()) << kernel.status();
        if (!kernel.ok()) continue;
        if (missing.empty() && i == 0) {
          const Source source = emit(*kernel, machine).value();
          const auto code = compile_gpu({&source, 1}, scratch.folder());
          EXPECT_TRUE(code.ok()) << code.status() << source.text;
          ++compiled;
        }
        const auto reduced = testing::reduce(group, plan, machine);
        EXPECT_TRUE(reduced.ok()) << reduced.status();
        if (!reduced.ok()) continue;
        const std::string text = print(reduced->graph);
        if (!known.contains(text)) {
          const auto number = checks.group(reduced->graph);
          EXPECT_TRUE(number.ok()) << number.status() << text;
          if (!number.ok()) continue;
          known[text] = *number;
          for (NodeId id = 0; id < static_cast<NodeId>(reduced->graph.nodes.size()); ++id)
            largest = std::max(largest, elements(reduced->graph.nodes[id].shape));
        }
        checks.add(known[text], reduced->source, plan);
      }
    }
    std::printf("%s: %zu groups, %d plans, %d compiled; %d reduced kernels, largest tensor of %lld elements\n",
                target.c_str(), groups.size(), plans, compiled, checks.kernels(), static_cast<long long>(largest));
    checks.expect_right();
  }
};

using SmallModelGroups = ModelGroups;
TEST_P(SmallModelGroups, OfTestDataCompileAndRunReduced) {
  const auto files = models_in(WARPLOOM_SOURCE_DIR "/tests/data");
  EXPECT_GE(files.size(), 5u);
  check(files, 0, 1);
}

TEST_P(ModelGroups, OfAllModelsCompileAndRunReduced) {
  if (testing::scaled(10) < 100) GTEST_SKIP() << "part of the long run: WARPLOOM_TEST_SCALE=10";
  const char* set = std::getenv("WARPLOOM_MODELS");
  const std::filesystem::path folder = set != nullptr ? set : WARPLOOM_SOURCE_DIR "/../shared/data/models";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no model files in " << folder;
  check(models_in(folder), 4, kParts);
}

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<std::string, int>>& info) {
  std::string name = cat(std::get<0>(info.param), "_", std::get<1>(info.param));
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}
const std::string kModelTargets[] = {"cuda:sm_80", "cuda:sm_90a", "hip:gfx90a"};
INSTANTIATE_TEST_SUITE_P(Targets, SmallModelGroups,
                         ::testing::Combine(::testing::ValuesIn(kModelTargets), ::testing::Values(0)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Targets, ModelGroups,
                         ::testing::Combine(::testing::ValuesIn(kModelTargets), ::testing::Range(0, kParts)),
                         name_of_case);

}  // namespace
}  // namespace wl

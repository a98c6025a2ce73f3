// Two workers of one kind must make the same object of a kernel, since promoted objects are compared by their bytes
// (docs/design/trust.md#confirmation). The test builds kernels of the goldens' groups for each CPU target and with each
// compiler. It builds no GPU code, which needs NVRTC or hipRTC.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "compiler/cover/stitching.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/golden/groups.h"
#include "tests/unit/file_text.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

struct Built {
  int same = 0, all = 0;
};

// Adds kernels of a golden's group for a target: those at the seeds of its space, for each compiler of this machine.
void add_candidates(const testing::Golden& golden, std::string_view target, const Device& device,
                    std::vector<Candidate>* to) {
  const Graph graph = parse(golden.graph).value();
  Machine machine = machine_of(device).value();
  machine.target = target_named(target).value();
  const auto domain = analyze_group(graph, machine);
  if (!domain.ok()) return;
  const auto space = space_of(graph, *domain, machine);
  if (!space.ok()) return;
  for (const Point& point : space->seeds) {
    const auto kernel = lower(graph, *domain, space->schedule(point), machine);
    if (!kernel.ok()) continue;
    auto source = emit(*kernel, machine);
    if (!source.ok()) continue;
    for (const std::string& compiler : device.compilers) {
      source->compiler = compiler;
      const auto number = static_cast<int64_t>(to->size());
      to->push_back({number, golden.name, *source});
    }
  }
}

// Compiles the candidates and returns the contents of each one's object, or "" if it does not compile.
std::vector<std::string> build(const std::vector<Candidate>& candidates, const std::string& folder, int jobs) {
  std::filesystem::create_directories(folder);
  CompileOptions options;
  options.folder = folder;
  options.unit = 1;
  options.jobs = jobs;
  options.deadline_ns = 600'000'000'000;
  const auto compiled = compile_cpu(candidates, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  std::vector<std::string> objects;
  for (const Compiled& one : *compiled)
    objects.push_back(one.outcome == Outcome::kCorrect ? testing::file_text(one.object) : "");
  return objects;
}

TEST(Rebuild, GivesTheSameBytes) {
  const Device device = describe_cpu();
  std::vector<Candidate> all;
  for (const testing::Golden& golden : testing::kGoldens)
    for (const Target& target : targets())
      if (cpu_runs(target.name)) add_candidates(golden, target.name, device, &all);
  ASSERT_FALSE(all.empty());
  std::vector<Candidate> first;
  const auto wanted = static_cast<size_t>(testing::scaled(12));
  // In `all`, candidates for the two compilers alternate, so an odd stride takes candidates for both.
  const size_t stride = std::max<size_t>(1, all.size() / wanted) | 1U;
  for (size_t i = 0; i < all.size(); i += stride) first.push_back(all[i]);
  // The second build has another folder, another order and other trial numbers, so that each kernel is compiled
  // together with other kernels than in the first build.
  std::vector<Candidate> second(first.rbegin(), first.rend());
  for (Candidate& candidate : second) candidate.trial += 1000;
  const Scratch scratch;
  const std::vector<std::string> one = build(first, scratch.path("one"), 2);
  std::vector<std::string> other = build(second, scratch.path("other/folder"), 1);
  std::reverse(other.begin(), other.end());
  std::map<std::string, Built> by_target;
  for (size_t i = 0; i < first.size(); ++i) {
    ASSERT_FALSE(one[i].empty() || other[i].empty())
        << first[i].plan << " for " << first[i].source.target << " does not compile";
    Built& built = by_target[cat(first[i].source.target, " ", first[i].source.compiler)];
    built.same += one[i] == other[i] ? 1 : 0;
    ++built.all;
  }
  for (const auto& [name, built] : by_target) {
    std::printf("%s: %d of %d kernels were built twice to the same bytes\n", name.c_str(), built.same, built.all);
    EXPECT_EQ(built.same, built.all) << name;
  }
}

}  // namespace
}  // namespace wl

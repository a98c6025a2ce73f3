// How many GPU kernels per second this machine compiles and judges, in JOBS processes as a worker does it:
//
//   gpu_compile RUNNER TARGET JOBS KERNELS [UNIT]
//
// prints one JSON object. The kernels are distinct schedules of memory-bound groups (softmax, norms, GELU, transposes,
// sums); UNIT is the number of kernels in a translation unit. Nothing runs on a GPU.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/schedule/space.h"
#include "tests/golden/groups.h"
#include "worker/compile_pool.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

const std::set<std::string> kMemoryBound = {
    "softmax",       "residual_layer_norm", "log_softmax_gather", "group_norm_silu", "bias_gelu",
    "transpose_add", "column_sum",          "causal_mask",        "concat_add",      "padded_average_pool"};

// Returns `wanted` candidates, equally many of every group's space, default schedules first.
std::vector<Candidate> candidates_for(const Machine& machine, size_t wanted) {
  std::vector<std::vector<Candidate>> by_group;
  for (const testing::Golden& golden : testing::kGoldens) {
    if (!kMemoryBound.contains(golden.name)) continue;
    const Graph graph = parse(golden.graph).value();
    const Domain domain = analyze(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    std::vector<Candidate>& mine = by_group.emplace_back();
    std::set<std::string> seen;
    const auto take = [&](const Point& point) {
      const auto kernel = lower(graph, domain, space.schedule(point), machine);
      if (!kernel.ok()) return true;
      absl::StatusOr<Source> source = emit(*kernel, machine);
      if (source.ok() && seen.insert(source->text).second) mine.push_back({0, space.text(point), *std::move(source)});
      return mine.size() < wanted;
    };
    for (const Point& point : space.seeds) take(point);
    space.enumerate(take);
  }
  std::vector<Candidate> out;
  for (size_t round = 0; out.size() < wanted; ++round) {
    bool any = false;
    for (std::vector<Candidate>& group : by_group) {
      if (round >= group.size() || out.size() >= wanted) continue;
      any = true;
      out.push_back(std::move(group[round]));
      out.back().trial = static_cast<int64_t>(out.size());
    }
    if (!any) break;
  }
  return out;
}

int run(const std::string& runner, const std::string& target, int jobs, size_t kernels, int unit) {
  if (const std::string missing = gpu_compiler_missing(target); !missing.empty()) {
    std::fprintf(stderr, "gpu_compile: %s: %s\n", target.c_str(), missing.c_str());
    return 77;
  }
  const auto row = target_named(target);
  if (!row.ok()) return 1;
  Machine machine;
  machine.target = *row;
  const std::vector<Candidate> candidates = candidates_for(machine, kernels);
  const std::string folder = cat(std::filesystem::temp_directory_path().string(), "/gpu_compile.", getpid());
  std::filesystem::create_directories(folder);
  CompileOptions options;
  options.folder = folder;
  options.unit = unit;
  CompilePool pool(runner, jobs);
  // The first compilation is not timed, because a worker starts its processes and loads libraries only once.
  const std::vector<Candidate> first(candidates.begin(), candidates.begin() + std::min<ptrdiff_t>(jobs, 2));
  (void)pool.compile(first, code_limits((*row)->gpu), options);
  const int64_t begin = monotonic_ns();
  const auto compiled = pool.compile(candidates, code_limits((*row)->gpu), options);
  const double seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  std::filesystem::remove_all(folder);
  if (!compiled.ok()) {
    std::fprintf(stderr, "gpu_compile: %s\n", std::string(compiled.status().message()).c_str());
    return 1;
  }
  std::map<Outcome, int> outcomes;
  std::set<std::string> objects;
  for (size_t i = 0; i < compiled->size(); ++i) {
    const Compiled& one = (*compiled)[i];
    ++outcomes[one.outcome];
    if (one.outcome != Outcome::kCorrect)
      std::fprintf(stderr, "%s: %s\n", candidates[i].plan.c_str(), one.message.c_str());
    objects.insert(one.object);
  }
  std::printf(
      "{\"target\": \"%s\", \"compiler\": \"%s\", \"jobs\": %d, \"unit\": %d, \"kernels\": %zu, \"objects\": %zu, "
      "\"accepted\": %d, \"rejected\": %d, \"failed\": %d, \"seconds\": %.3f, \"kernels_per_s\": %.1f}\n",
      target.c_str(), gpu_compiler_version(target).c_str(), jobs, unit, compiled->size(), objects.size(),
      outcomes[Outcome::kCorrect], outcomes[Outcome::kRejected],
      outcomes[Outcome::kCompileError] + outcomes[Outcome::kTimeout], seconds,
      static_cast<double>(compiled->size()) / seconds);
  return outcomes[Outcome::kCompileError] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) {
    std::fprintf(stderr, "usage: gpu_compile RUNNER TARGET JOBS KERNELS [UNIT]\n");
    return 1;
  }
  return wl::run(argv[1], argv[2], std::atoi(argv[3]), static_cast<size_t>(std::atol(argv[4])),
                 argc == 6 ? std::atoi(argv[5]) : 8);
}

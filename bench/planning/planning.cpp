// The CPU time that planning takes: the covers of a graph and, for every group of a cover, its space, its first kernel
// and the next proposals of a search.
//
//   planning [--targets NAME,..] [--threads N] [--l2 BYTES] [--cover C,..] [--seconds S] MODEL.onnx|FILE.graph...
//   planning ... --random FIRST:COUNT     random networks, by seed
//
// Prints a line for each graph, target and cover: CPU seconds of planning the cover and of planning its groups, and the
// slowest group; then a summary. With --seconds S, prints only lines of at least S seconds.
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/str_split.h"
#include "compiler/import/import.h"
#include "compiler/ir/text.h"
#include "compiler/ir/weights/fold_weights.h"
#include "server/jobs/job_plan.h"
#include "tests/planning/networks.h"

namespace wl {
namespace {

// Returns the CPU time of this process in seconds, which other load on the machine hardly affects.
double now_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Device device_of(const Target& target, int threads, int64_t l2_bytes) {
  Device device;
  device.target = target.name;
  device.name = "nominal";
  device.threads = target.is_gpu() ? target.gpu.units : threads;
  device.compilers = {"gcc", "clang"};
  device.l2_bytes = l2_bytes;
  if (target.is_gpu()) {
    device.l1_bytes = target.gpu.unit_shared;
    device.l2_bytes = target.gpu.l2_bytes;
    device.l3_bytes = 0;
  }
  return device;
}

absl::StatusOr<Graph> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (path.ends_with(".graph")) return parse(bytes.str());
  WL_ASSIGN_OR_RETURN(Imported imported, import_onnx(bytes.str()));
  WL_ASSIGN_OR_RETURN(auto folded, fold_weights(imported.graph, imported.weights));
  return folded.graph;
}

struct Asked {
  std::vector<std::string> targets, covers = {"stitched", "planned"};
  int threads = 16;
  int64_t l2_bytes = 2 << 20;
  double seconds = 0;
};
struct Worst {
  double plan_s = 0, group_s = 0, all_s = 0, sum_s = 0;
  int64_t count = 0, refused = 0;
};

void plan(const std::string& name, const Graph& graph, const Asked& asked, Worst& worst) {
  const std::string text = print(graph);
  for (const Target& target : targets()) {
    if (!asked.targets.empty() &&
        std::find(asked.targets.begin(), asked.targets.end(), target.name) == asked.targets.end())
      continue;
    for (const std::string& cover : asked.covers) {
      TuneOptions options;
      options.cover = cover;
      const double begin = now_s();
      const absl::StatusOr<JobPlan> plan =
          make_plan(text, options, device_of(target, asked.threads, asked.l2_bytes), warploom_compiler());
      const double planned = now_s();
      std::string what;
      double slowest = 0;
      if (!plan.ok()) {
        what = plan.status().ToString();
        ++worst.refused;
      } else {
        for (const PlannedGroup& group : plan->groups) {
          const double at = now_s();
          const auto opened = warploom_compiler().open(group.graph, plan->machine);
          if (!opened.ok()) {
            what += cat("; ", opened.status().ToString());
            continue;
          }
          const double open_s = now_s() - at;
          (void)(*opened)->space_text();
          const double text_s = now_s() - at - open_s;
          (void)(*opened)->generate((*opened)->seeds().front());
          const double generate_s = now_s() - at - open_s - text_s;
          std::vector<PlanOutcome> trials;
          for (const std::string& seed : (*opened)->seeds())
            trials.push_back({seed, true, 1000 + 10 * static_cast<double>(trials.size()), {}});
          (void)(*opened)->propose("portfolio", trials, 8, 1);
          const double all_s = now_s() - at;
          if (all_s > slowest) {
            slowest = all_s;
            what = cat("group ", group.name, " open ", open_s, " text ", text_s, " generate ", generate_s, " propose ",
                       all_s - open_s - text_s - generate_s);
          }
        }
      }
      const double end = now_s();
      worst.plan_s = std::max(worst.plan_s, planned - begin);
      worst.group_s = std::max(worst.group_s, slowest);
      worst.all_s = std::max(worst.all_s, end - begin);
      worst.sum_s += end - begin;
      ++worst.count;
      if (end - begin >= asked.seconds)
        std::printf("%8.3f s: plan %.3f, groups %.3f  %s %s %s  %s\n", end - begin, planned - begin, end - planned,
                    name.c_str(), std::string(target.name).c_str(), cover.c_str(), what.substr(0, 300).c_str());
      std::fflush(stdout);
    }
  }
}

int run(int argc, char** argv) {
  Asked asked;
  Worst worst;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto list = [&]() -> std::vector<std::string> { return absl::StrSplit(argv[++i], ','); };
    if (argument == "--targets") {
      asked.targets = list();
    } else if (argument == "--cover") {
      asked.covers = list();
    } else if (argument == "--threads") {
      asked.threads = std::stoi(argv[++i]);
    } else if (argument == "--l2") {
      asked.l2_bytes = std::stoll(argv[++i]);
    } else if (argument == "--seconds") {
      asked.seconds = std::stod(argv[++i]);
    } else if (argument == "--random") {
      const std::vector<std::string> range = absl::StrSplit(argv[++i], ':');
      const uint64_t first = std::stoull(range.at(0));
      for (uint64_t seed = first; seed < first + std::stoull(range.at(1)); ++seed)
        plan(cat("random ", seed), testing::random_network(seed), asked, worst);
    } else if (const absl::StatusOr<Graph> graph = read(argument); graph.ok()) {
      plan(argument.substr(argument.rfind('/') + 1), *graph, asked, worst);
    } else {
      std::cerr << argument << ": " << graph.status().message() << std::endl;
      return 1;
    }
  }
  std::printf("%lld plans, %lld refused; at most %.3f s, of which plan %.3f, a group %.3f; in all %.1f s\n",
              static_cast<long long>(worst.count), static_cast<long long>(worst.refused), worst.all_s, worst.plan_s,
              worst.group_s, worst.sum_s);
  return 0;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  return wl::run(argc, argv);
}

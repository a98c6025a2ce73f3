// What pipelining is worth by the latency model (compiler/model/pipeline.h): the best modelled time of every product of
// G. Huang et al., "ALCOP" (MLSys 2023), without it, with two buffers, with more stages in shared memory, and with
// registers too, as tables and bars in Markdown beside the paper's own means. Nothing is run.
//
//   pipelining [TARGET]    cuda:sm_80 by default, which the paper measured on; products are of f16
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/model/pipeline.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

struct Shape {
  const char* name;
  int batch, rows, columns, depth;
};
constexpr Shape kShapes[] = {
    {"1024^3", 1, 1024, 1024, 1024},
    {"2048^3", 1, 2048, 2048, 2048},
    {"4096^3", 1, 4096, 4096, 4096},
    {"BERT projection", 1, 512, 768, 768},
    {"BERT feed-forward 1", 1, 512, 3072, 768},
    {"BERT feed-forward 2", 1, 512, 768, 3072},
    {"BERT-large projection", 1, 512, 1024, 1024},
    {"BERT-large feed-forward 1", 1, 512, 4096, 1024},
    {"BERT-large feed-forward 2", 1, 512, 1024, 4096},
    {"12 x q k", 12, 512, 512, 64},
    {"12 x s v", 12, 512, 64, 512},
    {"16 x q k", 16, 512, 512, 64},
    {"16 x s v", 16, 512, 64, 512},
};

// Each kind of schedule may have what those before it have. `paper`: the geometric mean of measured speed-ups over TVM,
// which does not pipeline.
struct Kind {
  const char* name;
  int64_t stages, async, registers;
  double paper;
};
constexpr std::array<Kind, 4> kKinds = {{{"no pipelining", 1, 0, 1, 1},
                                         {"two buffers", 2, 0, 1, 1.01},
                                         {"more stages", 64, 1, 1, 1.13},
                                         {"and registers", 64, 1, 64, 1.23}}};
constexpr double kPaperBest = 1.73, kPaperWorst = 0.95;
using Times = std::array<double, kKinds.size()>;

Times best_times(const Shape& shape, const Machine& machine) {
  const auto matrix = [&](int rows, int columns) { return cat("f16[", shape.batch, ",", rows, ",", columns, "]"); };
  const Graph graph =
      parse(cat("graph {\n  %0 = input \"a\" : ", matrix(shape.rows, shape.depth),
                " normal(0,1)\n  %1 = input \"b\" : ", matrix(shape.depth, shape.columns),
                " normal(0,1)\n  %2 = contract %0 %1 \"bmk,bkn->bmn\" : ", matrix(shape.rows, shape.columns),
                "\n  output \"y\" %2\n}\n"))
          .value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const ProductExtents extents = product_extents(graph, domain);
  Times best;
  best.fill(std::numeric_limits<double>::infinity());
  space.enumerate([&](const Point& point) {
    const Schedule schedule = space.schedule(point);
    const double ns = gpu_contract_ns(schedule, extents, machine);
    for (size_t k = 0; k < kKinds.size(); ++k)
      if (schedule[kStages] <= kKinds[k].stages && schedule[kAsyncCopies] <= kKinds[k].async &&
          schedule[kRegisterStages] <= kKinds[k].registers)
        best[k] = std::min(best[k], ns);
    return true;
  });
  return best;
}

void bar(const char* name, double speedup) {
  std::printf("  %-28s %5.2f %s\n", name, speedup, std::string(static_cast<size_t>(speedup * 30), '#').c_str());
}

int run(const char* target) {
  const absl::StatusOr<const Target*> row = target_named(target);
  if (!row.ok() || !(*row)->is_gpu()) {
    std::fprintf(stderr, "pipelining: %s is no GPU of `warploom targets`\n", target);
    return 2;
  }
  Machine machine;
  machine.target = *row;
  std::printf("| product | us without |");
  for (size_t k = 1; k < kKinds.size(); ++k) std::printf(" %s |", kKinds[k].name);
  std::printf("\n|---|---|---|---|---|\n");
  Times logs{}, most{}, least;
  least.fill(std::numeric_limits<double>::infinity());
  for (const Shape& shape : kShapes) {
    const Times times = best_times(shape, machine);
    std::printf("| %s | %.1f |", shape.name, times[0] / 1000);
    for (size_t k = 0; k < kKinds.size(); ++k) {
      const double speedup = times[0] / times[k];
      if (k > 0) std::printf(" %.2f |", speedup);
      logs[k] += std::log(speedup) / static_cast<double>(std::size(kShapes));
      most[k] = std::max(most[k], speedup);
      least[k] = std::min(least[k], speedup);
    }
    std::printf("\n");
  }
  std::printf("\n%s, geometric means of modelled speed-ups, and (paper) of those measured on an A100:\n\n```\n",
              target);
  for (size_t k = 0; k < kKinds.size(); ++k) {
    bar(kKinds[k].name, std::exp(logs[k]));
    bar("  (paper)", kKinds[k].paper);
  }
  bar("best product", most.back());
  bar("  (paper)", kPaperBest);
  bar("worst product", least.back());
  bar("  (paper)", kPaperWorst);
  std::printf("```\n");
  return 0;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  return wl::run(argc > 1 ? argv[1] : "cuda:sm_80");
}

// Prints, as tables and bars in Markdown, the speed-up by pipelining that the latency model (compiler/model/pipeline.h)
// expects, beside the mean speed-ups of a paper, G. Huang et al., "ALCOP" (MLSys 2023): the best modelled time of each
// of the paper's products without pipelining, with two buffers, with more stages in shared memory, and with stages in
// registers as well. Nothing is run.
//
//   pipelining [TARGET]    cuda:sm_80 by default, as in the paper; products are of f16
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "bench/gpu_model/alcop.h"
#include "compiler/ir/text.h"
#include "compiler/model/pipeline.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

// A kind of schedule, given by the largest values that three choices may have. Each kind includes those before it.
// `paper`: the speed-up that the paper measured.
struct Kind {
  const char* name;
  int64_t stages, async, registers;
  double paper;
};
constexpr std::array<Kind, 4> kKinds = {{{"no pipelining", 1, 0, 1, 1},
                                         {"two buffers", 2, 0, 1, kAlcopBuffers},
                                         {"more stages", 64, 1, 1, kAlcopStages},
                                         {"and registers", 64, 1, 64, kAlcopRegisters}}};
using Times = std::array<double, kKinds.size()>;

Times best_times(const AlcopProduct& product, const Machine& machine) {
  const Graph graph = parse(product.graph("f16")).value();
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
  std::fputs(speedup_bar(name, speedup).c_str(), stdout);
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
  for (const AlcopProduct& product : kAlcopProducts) {
    const Times times = best_times(product, machine);
    std::printf("| %s | %.1f |", product.name, times[0] / 1000);
    for (size_t k = 0; k < kKinds.size(); ++k) {
      const double speedup = times[0] / times[k];
      if (k > 0) std::printf(" %.2f |", speedup);
      logs[k] += std::log(speedup) / static_cast<double>(std::size(kAlcopProducts));
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
  bar("  (paper)", kAlcopBest);
  bar("worst product", least.back());
  bar("  (paper)", kAlcopWorst);
  std::printf("```\n");
  return 0;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  return wl::run(argc > 1 ? argv[1] : "cuda:sm_80");
}

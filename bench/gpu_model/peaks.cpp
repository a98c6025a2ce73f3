// Prints a table in Markdown: for products in bf16, the share of a GPU's peak rate of matrix instructions that the
// latency model (compiler/model/pipeline.h) expects of the best schedule, and the times that the model adds up. Nothing
// is run.
//
//   peaks [TARGET...]    cuda:sm_80, cuda:sm_90a and hip:gfx942 by default
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/model/pipeline.h"
#include "compiler/model/rates.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

struct Product {
  const char* name;
  double products;  // number of multiply-adds of the product
  const char* text;
};
const Product kProducts[] = {
    {"4096x4096x4096", 4096.0 * 4096 * 4096, R"(graph {
  %0 = input "a" : bf16[4096,4096] normal(0,1)
  %1 = input "b" : bf16[4096,4096] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[4096,4096]
  output "y" %2
})"},
    {"3x3, 256 to 256 channels, 32 images of 56x56", 32.0 * 56 * 56 * 256 * 256 * 9, R"(graph {
  %0 = input "x" : bf16[32,56,56,256] normal(0,1)
  %1 = input "w" : bf16[3,3,256,256] normal(0,1)
  %2 = pad %0 low=[0,1,1,0] high=[0,1,1,0] value=0 : bf16[32,58,58,256]
  %3 = window %2 axes=[1,2] params=[3,1,1,3,1,1] : bf16[32,56,56,256,3,3]
  %4 = contract %3 %1 "bhwcrs,rscf->bhwf" : bf16[32,56,56,256]
  output "y" %4
})"},
};

// Removes values of choices that the model does not tell apart, and those that it never finds best: no matrix
// instructions, narrow tiles, short steps along k, and many blocks on a multiprocessor.
void cut(Space& space) {
  space.matters = nullptr;  // space.matters is cleared, because it refers to the values that are removed below
  for (Axis& axis : space.axes) {
    const Choice choice = *axis.choice;
    if (choice == kVector || choice == kUnrollK) axis.values.resize(1);
    std::erase_if(axis.values, [choice](int64_t value) {
      return (choice == kMatrix && value == kNoMatrix) || (choice == kMinBlocks && value > 2) ||
             (choice == kTileColumns && value < 64) || (choice == kStepK && value < 16);
    });
  }
}

// Prints the line of the table for a product, and returns the text of its best plan.
std::string row(const Machine& machine, const Product& product) {
  const Graph graph = parse(product.text).value();
  const Domain domain = analyze(graph, machine).value();
  Space space = space_of(graph, domain, machine).value();
  cut(space);
  const ProductExtents extents = product_extents(graph, domain);
  Point best_point;
  Schedule best;
  GpuContractTime time;
  time.ns = std::numeric_limits<double>::infinity();
  space.enumerate([&](const Point& point) {
    const Schedule schedule = space.schedule(point);
    const GpuContractTime one = gpu_contract_time(schedule, extents, machine);
    if (one.ns >= time.ns) return true;
    time = one;
    best = schedule;
    best_point = point;
    return true;
  });
  // The peak in multiply-adds per ns: the f32 multiply-adds per ns (one for each issue slot) times the relative rate of
  // the target's fastest bf16 instruction.
  const double peak = rates_of(machine).slots_per_ns * machine.target->arithmetic.matrices(DType::bf16, DType::bf16);
  const int64_t rows = rows_of_tile(best), columns = columns_of_tile(best);
  const double computed = static_cast<double>(extents.loops.tiles(best) * rows * columns) * extents.depth;
  const auto tile = [&](const std::array<Choice, 3>& choices) {
    std::string text = cat(best[choices[0]]);
    for (size_t i = 1; i < choices.size(); ++i)
      if (best[choices[i]] > 1) append(&text, " x ", best[choices[i]], i == 1 ? " runs" : " planes");
    return text;
  };
  const std::string chosen =
      cat(tile(kRowLoops), " by ", tile(kColumnLoops), ", step ", best[kStepK], ", ", best[kStages], " stages",
          best[kPersistent] > 0 ? ", persistent" : "",
          best[kReductionBlocks] > 1 ? cat(", last round in ", best[kReductionBlocks], " parts") : "");
  std::printf(
      "| `%s` | %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f x %.0f x %.0f | %.2f | %.1f | **%.2f** |\n",
      std::string(machine.target->name).c_str(), product.name, chosen.c_str(), time.products, time.shared, time.l2,
      time.cache, time.memory, time.use, time.steps, time.beside, time.waves, product.products / computed,
      time.ns / 1000, product.products / peak / time.ns);
  return space.text(best_point);
}

int run(const std::vector<std::string>& targets) {
  std::printf(
      "Of a step along K, in ns: multiplying, reading shared memory, the L2, the cache between L2s of several dies "
      "and memory, and the step once it has arrived. Steps of a "
      "block, blocks beside each other and rounds of blocks multiply it.\n\n"
      "| target | product | tile | multiply | shared | L2 | cache | memory | step | steps x blocks x rounds | full | "
      "us | of "
      "the peak |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::string plans;
  for (const std::string& name : targets) {
    const absl::StatusOr<const Target*> target = target_named(name);
    if (!target.ok() || !(*target)->is_gpu()) {
      std::fprintf(stderr, "peaks: %s is no GPU of `warploom targets`\n", name.c_str());
      return 2;
    }
    Machine machine;
    machine.target = *target;
    for (const Product& product : kProducts) append(&plans, "    ", row(machine, product), "\n");
  }
  std::printf("\nTheir plans:\n\n%s", plans.c_str());
  return 0;
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  std::vector<std::string> targets(argv + 1, argv + argc);
  if (targets.empty()) targets = {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942"};
  return wl::run(targets);
}

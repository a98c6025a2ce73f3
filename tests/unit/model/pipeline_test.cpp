#include "compiler/model/pipeline.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

TEST(Pipeline, HidesLoadsBehindWhatIsComputedMeanwhile) {
  EXPECT_DOUBLE_EQ(pipelined_ns(30, 10, 8, 1, 1), 320);  // one stage: nothing is loaded ahead
  EXPECT_DOUBLE_EQ(pipelined_ns(30, 10, 8, 2, 1), 160);  // two stages: one step is loaded ahead, which halves the time
  EXPECT_DOUBLE_EQ(pipelined_ns(30, 10, 8, 4, 1), 80);   // four stages hide the whole latency
  EXPECT_DOUBLE_EQ(pipelined_ns(30, 10, 8, 1, 4), 80);   // four loops on one multiprocessor hide the whole latency too
  EXPECT_DOUBLE_EQ(pipelined_ns(30, 10, 8, 9, 9), 80);   // more stages or loops do not help
}

struct Product {
  Graph graph;
  Machine machine;
  Domain domain;
  Space space;
  ProductExtents extents;

  Product(int rows, int depth, int columns, std::string_view target)
      : graph(parse(cat("graph {\n  %0 = input \"a\" : f32[", rows, ",", depth,
                        "] normal(0,1)\n  %1 = input \"b\" : f32[", depth, ",", columns,
                        "] normal(0,1)\n  %2 = contract %0 %1 \"mk,kn->mn\" : f32[", rows, ",", columns,
                        "]\n  output \"y\" %2\n}\n"))
                  .value()) {
    machine.target = target_named(target).value();
    domain = analyze(graph, machine).value();
    space = space_of(graph, domain, machine).value();
    extents = product_extents(graph, domain);
  }
  double ns(const Schedule& schedule) const { return gpu_contract_ns(schedule, extents, machine); }
};

TEST(Pipeline, FewBlocksWantMoreStagesAndManyDoNot) {
  const Product few(128, 4096, 128, "cuda:sm_80"), many(8192, 4096, 8192, "cuda:sm_80");
  EXPECT_EQ(few.extents.depth, 4096);
  EXPECT_EQ(few.extents.loops.rows[0] * few.extents.loops.columns[0], 128 * 128);
  const auto staged = [](const Product& product, int64_t stages, int64_t async) {
    Schedule schedule = product.space.schedule(product.space.seeds[0]);
    for (const auto& [choice, value] :
         {std::pair{kTileRows, 64}, {kTileColumns, 64}, {kThreadRows, 8}, {kThreadColumns, 4}, {kReductionBlocks, 1}})
      schedule.set(choice, value);
    schedule.set(kStages, stages);
    schedule.set(kAsyncCopies, async);
    return product.ns(schedule);
  };
  EXPECT_GT(staged(few, 1, 0), 1.3 * staged(few, 2, 0));
  EXPECT_GT(staged(few, 2, 0), 1.1 * staged(few, 4, 1));
  EXPECT_LT(staged(many, 1, 0), 1.2 * staged(many, 4, 1));
  // A kernel's predicted time is never below the time of its multiplications.
  const double flops_per_ns = 2 * 64 * 108 * 1.7;
  EXPECT_GT(staged(many, 4, 1), 0.5 * 2 * 8192.0 * 8192 * 4096 / flops_per_ns);
}

// If each step reads the first values of the next step early, these reads do not wait behind the barrier. This saves
// time if few warps are there to hide the wait.
TEST(Pipeline, CarriedReadsSaveAWaitInEveryStep) {
  const Product product(128, 4096, 128, "cuda:sm_80");
  Schedule schedule = product.space.schedule(product.space.seeds[0]);
  const auto ns = [&](int64_t sets) {
    schedule.set(kRegisterStages, sets);
    return product.ns(schedule);
  };
  EXPECT_LT(ns(2), ns(1));
  EXPECT_GT(ns(2), 0.7 * ns(1));
}

}  // namespace
}  // namespace wl

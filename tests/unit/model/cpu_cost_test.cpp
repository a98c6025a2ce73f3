#include "compiler/model/cpu_cost.h"

#include <gtest/gtest.h>

#include "compiler/model/polydl.h"
#include "compiler/model/reuse.h"
#include "tests/unit/model/contractions.h"

namespace wl {
namespace {

Machine one_thread() {
  Machine machine;
  machine.target = target_named("cpu:avx512").value();
  return machine;
}

TEST(CpuCost, CountsEveryStepOnce) {
  for (const char* text : {testing::kEven, testing::kOdd, testing::kConvolution})
    for (const testing::Scheduled& each : testing::scheduled(text, 1, 30, 6)) {
      const CpuWork work = cpu_work(each.kernel, one_thread());
      double products = 0;
      for (const auto& [micro, steps] : work.micro) products += steps * micro.height;
      // Rows times depth, once for each panel of columns.
      const double rows = text == testing::kEven ? 48 * 64 : text == testing::kOdd ? 37 * 70 : 16 * 72;
      EXPECT_NEAR(products / rows, std::round(products / rows), 1e-6) << each.plan << "\n" << print(each.kernel);
      EXPECT_GE(products, rows);
      EXPECT_GT(work.amount[kCall], 0);
    }
}

TEST(CpuCost, TextReadsBack) {
  CpuCost cost = default_cpu_cost(one_thread());
  cost.device = "cpu:avx512|Some CPU|t2|1/2/3";
  cost.step_ns[{"gcc", 14, 2}] = 2.5;
  const auto read = parse_cpu_cost(print(cost));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(print(*read), print(cost));
  EXPECT_EQ(read->device, cost.device);
  EXPECT_FALSE(parse_cpu_cost("").ok());
  EXPECT_FALSE(parse_cpu_cost("warploom cpu-cost 1\nterm nothing 1").ok());
  EXPECT_FALSE(parse_cpu_cost("warploom cpu-cost 1\nterm call -1").ok());
}

// What made the samples is found again, and what no sample has stays as it was.
TEST(CpuCost, CalibrationFindsTheCostsOfAMachine) {
  const Machine machine = one_thread();
  CpuCost truth = default_cpu_cost(machine);
  truth.ns[kCall] *= 3;
  truth.ns[kPackRow] *= 0.5;
  truth.ns[kEntry] *= 8;
  std::vector<CpuSample> samples;
  for (const char* text : {testing::kEven, testing::kConvolution, testing::kTransposed})
    for (const testing::Scheduled& each : testing::scheduled(text, 1, 60, 7)) {
      const CpuWork work = cpu_work(each.kernel, machine);
      samples.push_back({work, cpu_ns(work, truth), false});
    }
  const CpuCost found = calibrate(samples, machine, "here");
  double worst = 0;
  for (const CpuSample& sample : samples) worst = std::max(worst, std::abs(cpu_ns(sample.work, found) / sample.ns - 1));
  EXPECT_LT(worst, 0.1);
  EXPECT_DOUBLE_EQ(found.ns[kMemoryRuns], truth.ns[kMemoryRuns]);
  for (double ns : found.ns) EXPECT_GE(ns, 0);
}

TEST(CpuCost, MicroKernelsCostWhatWasMeasured) {
  const Machine machine = one_thread();
  const auto each = testing::scheduled(testing::kEven, 1, 1, 8)[0];
  CpuWork work = cpu_work(each.kernel, machine);
  work.micro = {{{"gcc", 14, 2}, 1000}};
  const CpuCost cost = calibrate({{work, 2500, true}}, machine, "here");
  EXPECT_DOUBLE_EQ(cost.step_ns.at({"gcc", 14, 2}), 2.5);
  const double before = cpu_ns(work, cost);
  work.micro[0].second = 2000;
  EXPECT_DOUBLE_EQ(cpu_ns(work, cost) - before, 2500);
}

// The baseline prefers what has small working sets, however often they move.
TEST(Polydl, RanksSmallWorkingSetsFirst) {
  const Machine machine = one_thread();
  std::vector<std::pair<PolydlRank, double>> ranked;
  for (const testing::Scheduled& each : testing::scheduled(testing::kEven, 1, 30, 9)) {
    const Reuse reuse(each.kernel);
    const PolydlRank rank = polydl_rank(reuse, machine);
    EXPECT_GT(rank.cycles, 0);
    EXPECT_GT(rank.tie, 0);
    // Everything fits the first cache here: four cycles a byte.
    double all = 0;
    for (size_t loop = 0; loop < reuse.loops().size(); ++loop) all += reuse.run_bytes(static_cast<int>(loop)) * 2;
    EXPECT_LE(rank.cycles, 60 * all);
  }
}

}  // namespace
}  // namespace wl

#include "compiler/model/cpu_cost.h"

#include <gtest/gtest.h>

#include <tuple>

#include "absl/strings/str_replace.h"
#include "compiler/model/polydl.h"
#include "compiler/model/reuse.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/lower/lower.h"
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
      // `rows` is the number of rows times the depth of K. In each strip of columns as wide as a tile, steps times tile
      // heights add up to `rows`, so `products` is a multiple of `rows`.
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
  EXPECT_FALSE(parse_cpu_cost("warploom cpu-cost 1\nterm call 1").ok());
  EXPECT_TRUE(parse_cpu_cost("warploom cpu-cost 2\nterm call 1").ok());
  EXPECT_FALSE(parse_cpu_cost("warploom cpu-cost 2\nterm nothing 1").ok());
  EXPECT_FALSE(parse_cpu_cost("warploom cpu-cost 2\nterm call -1").ok());
}

// Returns the kernel of a contraction whose schedule is given by the text `choices`.
Kernel kernel_of(const char* text, const std::string& choices) {
  const Graph graph = parse(text).value();
  Machine machine = one_thread();
  machine.clang = true;
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const Point point = space
                          .parse(cat("plan 1 target=cpu:avx512 class=contract ", choices,
                                     " pack_a=0 order=1 row_tasks=1 column_tasks=1 threads=1"))
                          .value();
  return lower(graph, domain, space.schedule(point), machine).value();
}

// With nc = 768, the loop over blocks of columns has two iterations for 784 columns: the first has twelve tiles of four
// vectors each, and the second has one tile of one vector.
TEST(CpuCost, TheSecondOfTwoTurnsCountsForWhatItHolds) {
  constexpr const char* kColumns = R"(graph {
  %0 = input "a" : f32[6,64] normal(0,1)
  %1 = input "b" : f32[64,784] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[6,784]
  output "y" %2
})";
  const CpuWork work = cpu_work(kernel_of(kColumns, "mr=6 nv=4 kc=0 nc=768 pack_b=0 compiler=gcc"), one_thread());
  ASSERT_EQ(work.micro.size(), 2u);
  EXPECT_EQ(work.micro[0].first, (MicroKernel{"gcc", 6, 1}));
  EXPECT_DOUBLE_EQ(work.micro[0].second, 64);
  EXPECT_EQ(work.micro[1].first, (MicroKernel{"gcc", 6, 4}));
  EXPECT_DOUBLE_EQ(work.micro[1].second, 12 * 64);
}

// Transposed tiles (up to eight pixels of an image row by two vectors of filters) have no empty lanes. With
// skip_padding, the image's first and last row skip the one of the three rows of taps that lies in the padding.
TEST(CpuCost, StepsOfTurnedTilesHaveNoEmptyLanes) {
  // An image of 15 rows is copied in blocks of 12 and 3 rows.
  for (const auto& [side, nc, tiles] : {std::tuple{7, 0, 1}, {15, 192, 2}})
    for (const int64_t skip : {0, 1}) {
      const std::string size = cat(side, ",", side), padded = cat(side + 2, ",", side + 2);
      const std::string text =
          cat("graph {\n  %0 = input \"x\" : f32[24,", size,
              "] normal(0,1)\n  %1 = input \"w\" : f32[2,24,3,3,32] normal(0,1)\n",
              "  %2 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[24,", padded,
              "]\n  %3 = window %2 axes=[1,2] params=[3,1,1,3,1,1] : f32[24,", size,
              ",3,3]\n  %4 = contract %3 %1 \"kmoli,nkliu->numo\" : f32[2,32,", size, "]\n  output \"y\" %4\n}");
      const std::string choices = cat("mr=8 nv=2 kc=0 nc=", nc,
                                      " pack_b=0 compiler=gcc prefetch=64 copy_image=whole turn_tiles=1 skip_padding=");
      const CpuWork work = cpu_work(kernel_of(text.c_str(), cat(choices, skip)), one_thread());
      double lanes = 0;
      for (const auto& [micro, steps] : work.micro) lanes += steps * micro.height * micro.vectors * 16;
      EXPECT_NEAR(lanes, 64 * side * 24 * 3 * (skip == 1 ? side * 3 - 2 : side * 3), 1e-6) << side;
      EXPECT_EQ(work.amount[kCall], side * tiles * 2);
    }
}

// Only the steps inside the lower triangle, about half of all steps, are counted. This holds even if there are so many
// tiles that the model estimates the count.
TEST(CpuCost, AMaskedProductHasTheStepsThatCount) {
  for (const auto& [n, beyond] : {std::pair{256, 0.15}, {4096, 0.02}}) {
    const std::string type = cat("[", n, ",", n, "]"), left = cat("graph {\n  %0 = input \"a\" : f32", type);
    const std::string right = cat("\n  %1 = input \"b\" : f32", type), text = cat(left, right, R"(
  %2 = iota axis=[0] : i32TYPE
  %3 = iota axis=[1] : i32TYPE
  %4 = ge %2 %3 : b1TYPE
  %5 = constant 0 : f32TYPE
  %6 = select %4 %0 %5 : f32TYPE
  %7 = contract %6 %1 "mk,kn->mn" : f32TYPE
  output "y" %7
})");
    const auto steps = [&](const std::string& graph) {
      const Kernel kernel = kernel_of(graph.c_str(), "mr=8 nv=2 kc=0 nc=0 pack_b=1 compiler=gcc prefetch=0");
      double all = 0;
      for (const auto& [micro, count] : cpu_work(kernel, one_thread()).micro)
        all += count * micro.height * micro.vectors;
      return all;
    };
    const double whole =
        steps(cat(left, right, "\n  %2 = contract %0 %1 \"mk,kn->mn\" : f32", type, "\n  output \"y\" %2\n}"));
    const double half = steps(absl::StrReplaceAll(text, {{"TYPE", type}})) / whole;
    EXPECT_GT(half, 0.5) << n;
    EXPECT_LT(half, 0.5 + beyond) << n;
  }
}

// The kernel reads two vectors of each row of the right operand. If these rows are four cache lines apart, hardware
// prefetchers follow them and all rows count as one stream; if they are eight lines apart, each row is a stream.
TEST(CpuCost, RowsThatPrefetchersFollowAreOneRun) {
  for (const int columns : {64, 128}) {
    const std::string text =
        cat("graph {\n  %0 = input \"a\" : f32[8,96] normal(0,1)\n  %1 = input \"b\" : f32[96,", columns,
            "] normal(0,1)\n  %2 = contract %0 %1 \"mk,kn->mn\" : f32[8,", columns, "]\n  output \"y\" %2\n}");
    const Kernel kernel = kernel_of(text.c_str(), "mr=8 nv=2 kc=0 nc=0 pack_b=0 compiler=gcc prefetch=0");
    const Reuse reuse(kernel);
    int found = 0;
    for (size_t r = 0; r < reuse.references().size(); ++r) {
      const Reuse::Reference& reference = reuse.references()[r];
      if (reference.store || reference.lanes == 1) continue;
      const Touched rows =
          reuse.touched(static_cast<int>(r), reuse.loops()[static_cast<size_t>(reference.loop)].parent);
      EXPECT_EQ(rows.lines, 96 * 2);
      EXPECT_EQ(rows.runs, columns == 64 ? 1 : 96);
      ++found;
    }
    EXPECT_EQ(found, 1) << print(kernel);
  }
}

// The right operand fits no cache. If the tile's width does not divide the number of columns, clang masks all loads of
// the last tile, gcc only those of its second vector. Packed rows are padded and need no masks.
TEST(CpuCost, MaskedLoadsAreClangs) {
  constexpr const char* kLarge = R"(graph {
  %0 = input "a" : f32[8,4096] normal(0,1)
  %1 = input "b" : f32[4096,4112] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[8,4112]
  output "y" %2
})";
  const auto masked = [&](const char* choices) {
    return cpu_work(kernel_of(kLarge, choices), one_thread()).amount[kMasked];
  };
  EXPECT_NEAR(masked("mr=8 nv=3 kc=512 nc=768 pack_b=0 compiler=clang"), 4096 * 4112 / 16, 4096 * 16);
  EXPECT_EQ(masked("mr=8 nv=3 kc=512 nc=768 pack_b=0 compiler=gcc"), 0);
  EXPECT_EQ(masked("mr=8 nv=3 kc=512 nc=768 pack_b=1 compiler=clang"), 0);
  // The tile's width divides the number of columns, so no load is masked.
  EXPECT_EQ(masked("mr=8 nv=1 kc=512 nc=768 pack_b=0 compiler=clang"), 0);
}

// Calibration recovers the costs from which the samples were computed. Costs that no sample depends on stay unchanged.
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

// A step of a micro-kernel takes at least the time of eight multiply-adds. With three rows and two vectors it has five
// loads, each of which takes the time of one multiply-add. Three prefetches fit beside them; more make the step longer.
TEST(CpuCost, HintsTakeThePlacesOfLoads) {
  const Machine machine = one_thread();
  CpuWork work;
  const auto ns = [&](int height, int vectors, int hints, const CpuCost& cost) {
    work.micro = {{MicroKernel{"gcc", height, vectors, 0, hints}, 1000}};
    return cpu_ns(work, cost) * cost.fma_per_ns / 1000;
  };
  CpuCost cost = default_cpu_cost(machine);
  EXPECT_DOUBLE_EQ(ns(3, 2, 0, cost), 8);
  EXPECT_DOUBLE_EQ(ns(3, 2, 3, cost), 8);
  EXPECT_DOUBLE_EQ(ns(3, 2, 6, cost), 11);
  EXPECT_DOUBLE_EQ(ns(14, 2, 4, cost), 28);
  // A measured time of a step is that without prefetches. If loads and prefetches take longer than the measured time,
  // their time counts.
  cost.step_ns[{"gcc", 3, 2}] = 9 / cost.fma_per_ns;
  EXPECT_DOUBLE_EQ(ns(3, 2, 3, cost), 9);
  EXPECT_DOUBLE_EQ(ns(3, 2, 6, cost), 11);
}

// Four independent products (two by two accumulator registers) hide each other's latency, so the time is given by the
// target's rate of matrix instructions.
TEST(CpuCost, TileRegistersMultiplyAtTheRateOfTheRow) {
  const Graph graph = parse(R"(graph {
  %0 = input "a" : bf16[256,512,2]
  %1 = input "w" : bf16[8,512,32,2]
  %2 = contract %0 %1 "mkj,pkqj->mpq" : bf16[256,8,32]
  output "y" %2
})")
                          .value();
  Machine machine;
  machine.target = target_named("cpu:amx").value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const int64_t matrix = values_of(space, kMatrix).back();
  const auto work_of = [&](int64_t mr, int64_t nv, int64_t by) {
    Schedule schedule = space.schedule(space.seeds[0]);
    for (const auto& [choice, value] : {std::pair{kMr, mr}, {kNv, nv}, {kMatrix, by}}) schedule.set(choice, value);
    return cpu_work(lower(graph, domain, schedule, machine).value(), machine);
  };
  const auto ns = [&](const CpuWork& work) { return cpu_ns(work, default_cpu_cost(machine)); };
  const CpuWork four = work_of(32, 2, matrix);
  ASSERT_EQ(four.micro.size(), 1u);
  const double flops = 2. * 256 * 256 * 1024;
  EXPECT_NEAR(four.micro[0].second * four.micro[0].first.step_ns, flops / (120 * 16), 1);
  EXPECT_LT(ns(four), ns(work_of(16, 1, matrix)));
  EXPECT_LT(ns(work_of(16, 1, matrix)), ns(work_of(14, 2, kNoMatrix)));
}

TEST(CpuCost, TheSecondCacheShowsOnceMicroKernelsDoNotHideIt) {
  CpuCost cost = default_cpu_cost(one_thread());
  cost.step_ns[{"gcc", 8, 2}] = 2;
  CpuWork work;
  work.micro = {{{"gcc", 8, 2}, 1000}};
  const double alone = cpu_ns(work, cost);
  work.amount[kFromL2] = 1900;
  EXPECT_DOUBLE_EQ(cpu_ns(work, cost), alone);
  work.amount[kFromL2] = 2500;
  EXPECT_DOUBLE_EQ(cpu_ns(work, cost), alone + 500 * cost.ns[kFromL2]);
}

// The baseline model (PolyDL) prefers small working sets, and ignores how often data are moved.
TEST(Polydl, RanksSmallWorkingSetsFirst) {
  const Machine machine = one_thread();
  for (const testing::Scheduled& each : testing::scheduled(testing::kEven, 1, 30, 9)) {
    const Reuse reuse(each.kernel);
    const PolydlRank rank = polydl_rank(reuse, machine);
    EXPECT_GT(rank.cycles, 0);
    EXPECT_GT(rank.tie, 0);
    // Each byte in the third-level cache costs 60 cycles, and the model assumes that every working set fits there.
    double all = 0;
    for (size_t loop = 0; loop < reuse.loops().size(); ++loop) all += reuse.run_bytes(static_cast<int>(loop)) * 2;
    EXPECT_LE(rank.cycles, 60 * all);
  }
}

}  // namespace
}  // namespace wl

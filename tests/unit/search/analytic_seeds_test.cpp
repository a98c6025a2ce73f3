#include "compiler/search/analytic_seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/model/gpu_cost.h"
#include "compiler/schedule/lower/lower.h"

namespace wl {
namespace {

constexpr const char* kProduct = R"(graph {
  %0 = input "a" : f32[512,768] normal(0,1)
  %1 = input "b" : f32[768,640] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[512,640]
  output "y" %2
})";
constexpr const char* kRows = R"(graph {
  %0 = input "x" : f32[64,256] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[64]
  output "y" %1
})";

struct Opened {
  Graph graph;
  Machine machine;
  Domain domain;
  Space space;
};

Opened open(const char* text, std::string_view target) {
  Opened out;
  out.graph = parse(text).value();
  out.machine.target = target_named(target).value();
  out.machine.threads = 2;
  out.domain = analyze(out.graph, out.machine).value();
  out.space = space_of(out.graph, out.domain, out.machine).value();
  return out;
}

TEST(AnalyticSeeds, AreLegalDistinctAndAlikeEveryTime) {
  Opened first = open(kProduct, "cpu:avx512"), second = open(kProduct, "cpu:avx512");
  const Point own = first.space.seeds[0];
  order_seeds(first.graph, first.domain, first.machine, first.space);
  order_seeds(second.graph, second.domain, second.machine, second.space);
  EXPECT_EQ(first.space.seeds, second.space.seeds);
  EXPECT_LE(first.space.seeds.size(), 8u);
  const std::set<Point> distinct(first.space.seeds.begin(), first.space.seeds.end());
  EXPECT_EQ(distinct.size(), first.space.seeds.size());
  for (const Point& seed : first.space.seeds) EXPECT_TRUE(first.space.is_legal(seed)) << first.space.text(seed);
  // The seed that was first before order_seeds() is still among the seeds.
  EXPECT_TRUE(std::find(first.space.seeds.begin(), first.space.seeds.end(), own) != first.space.seeds.end());
  // The best seed uses all threads and a large micro-kernel.
  const Schedule best = first.space.schedule(first.space.seeds[0]);
  EXPECT_EQ(best[kThreads], 2);
  EXPECT_GE(best[kMr] * best[kNv], 16);
}

// The image's rows have seven pixels, and a tile has at most these, so tile heights (kMr) of 8, 9, 12 and 14 give the
// same kernel. All seeds must give different kernels.
TEST(AnalyticSeeds, AreOfDifferentKernels) {
  constexpr const char* kConvolution = R"(graph {
  %0 = input "x" : f32[64,7,7] normal(0,1)
  %1 = input "w" : f32[4,64,3,3,16] normal(0,1)
  %2 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[64,9,9]
  %3 = reshape %2 : f32[1,64,9,9]
  %4 = window %3 axes=[2,3] params=[3,1,1,3,1,1] : f32[1,64,7,7,3,3]
  %5 = reshape %4 : f32[64,7,7,3,3]
  %6 = contract %5 %1 "kmoli,nkliu->numo" : f32[4,16,7,7]
  output "y" %6
})";
  Opened opened = open(kConvolution, "cpu:avx2");
  order_seeds(opened.graph, opened.domain, opened.machine, opened.space);
  std::set<std::string> kernels;
  for (const Point& seed : opened.space.seeds)
    kernels.insert(print(lower(opened.graph, opened.domain, opened.space.schedule(seed), opened.machine).value()));
  EXPECT_EQ(kernels.size(), opened.space.seeds.size());
  EXPECT_EQ(kernels.size(), 8u);
}

TEST(AnalyticSeeds, ModelsAreSwitchedOffByName) {
  Opened group = open(kProduct, "cpu:avx512");
  const std::vector<Point> own = group.space.seeds;
  std::vector<std::string_view> all;
  for (const SeedModel& row : seed_models()) all.push_back(row.name);
  order_seeds(group.graph, group.domain, group.machine, group.space, all);
  EXPECT_EQ(group.space.seeds, own);
  order_seeds(group.graph, group.domain, group.machine, group.space);
  EXPECT_NE(group.space.seeds, own);
}

// If there is a learned model, it orders the seeds instead of the analytic model. The learned model of this test
// prefers tiles of few rows; the analytic model does not.
TEST(AnalyticSeeds, TheLearnedModelIsAskedFirst) {
  Opened group = open(kProduct, "cpu:avx512");
  group.space.expected_log_ns = [&space = group.space](const Point& point) {
    return static_cast<double>(space.schedule(point)[kMr]);
  };
  Opened other = group;
  other.space.expected_log_ns = group.space.expected_log_ns;
  order_seeds(group.graph, group.domain, group.machine, group.space);
  const std::vector<std::string_view> without = {"ranker"};
  order_seeds(other.graph, other.domain, other.machine, other.space, without);
  EXPECT_LT(group.space.schedule(group.space.seeds[0])[kMr], other.space.schedule(other.space.seeds[0])[kMr]);
}

TEST(AnalyticSeeds, OthersKeepTheirOwn) {
  Opened group = open(kRows, "cpu:avx512");
  const std::vector<Point> own = group.space.seeds;
  order_seeds(group.graph, group.domain, group.machine, group.space);
  EXPECT_EQ(group.space.seeds, own);
}

double gpu_ns(const Opened& group, const Point& point) {
  return gpu_time(*lower(group.graph, group.domain, group.space.schedule(point), group.machine), group.machine).ns;
}

// For loop nests on GPUs, the former seeds are put in the model's order, and the best schedule that the model finds is
// the second.
TEST(AnalyticSeeds, OfNestsOnLanesAreInTheOrderOfTheirModel) {
  for (const char* target : {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942"}) {
    Opened group = open(kRows, target);
    const std::vector<Point> own = group.space.seeds;
    order_seeds(group.graph, group.domain, group.machine, group.space);
    const std::vector<Point>& seeds = group.space.seeds;
    EXPECT_LE(seeds.size(), 8u);
    EXPECT_NE(std::find(own.begin(), own.end(), seeds[0]), own.end());
    const auto ns = [&](const Point& point) { return gpu_ns(group, point); };
    for (const Point& seed : own) EXPECT_LE(ns(seeds[0]), ns(seed)) << target;
    for (const Point& seed : seeds) {
      EXPECT_TRUE(group.space.is_legal(seed)) << group.space.text(seed);
      EXPECT_LE(ns(seeds[1]), ns(seed)) << target;
    }
  }
}

// For contractions on GPUs, the first seed is the model's best point, and the seed that was first before
// remains among the seeds.
TEST(AnalyticSeeds, OfContractionsOnLanesComeFromTheModelOfKernels) {
  for (const char* target : {"cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "hip:gfx90a"}) {
    Opened group = open(kProduct, target);
    const std::vector<Point> own = group.space.seeds;
    order_seeds(group.graph, group.domain, group.machine, group.space);
    const std::vector<Point>& seeds = group.space.seeds;
    ASSERT_FALSE(seeds.empty());
    EXPECT_LE(seeds.size(), 8u);
    const auto ns = [&](const Point& point) { return gpu_ns(group, point); };
    for (const Point& seed : seeds) EXPECT_TRUE(group.space.is_legal(seed)) << group.space.text(seed);
    for (const Point& seed : own) EXPECT_LE(ns(seeds[0]), ns(seed)) << target;
    EXPECT_NE(std::find(seeds.begin(), seeds.end(), own[0]), seeds.end());
  }
}

}  // namespace
}  // namespace wl

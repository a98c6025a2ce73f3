// Which kernels of a cover are packed, and which may not be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compiler/cover/cover.h"
#include "compiler/cover/explain.h"
#include "compiler/cover/planned/planned.h"
#include "compiler/cover/stitching.h"
#include "compiler/domain/pack.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

Machine gpu() {
  Machine machine = test_machine();
  machine.target = target_named("cuda:sm_90a").value();
  return machine;
}

// Three products give the queries, keys and values of 512 tokens, and a fourth product depends on the keys.
constexpr const char* kProducts = R"(graph {
  %0 = input "x" : f32[512,768] normal(0,1)
  %1 = input "a" : f32[768,768] normal(0,1)
  %2 = input "b" : f32[768,768] normal(0,1)
  %3 = input "c" : f32[768,256] normal(0,1)
  %4 = input "d" : f32[768,256] normal(0,1)
  %5 = contract %0 %1 "mk,kn->mn" : f32[512,768]
  %6 = contract %0 %2 "mk,kn->mn" : f32[512,768]
  %7 = contract %0 %3 "mk,kn->mn" : f32[512,256]
  %8 = contract %6 %4 "mk,kn->mn" : f32[512,256]
  output "q" %5
  output "v" %7
  output "k" %8
})";

std::vector<LoopClass> classes(const Graph& graph, const Cover& cover, const Machine& machine) {
  std::vector<LoopClass> out;
  for (const Group& group : cover.groups) out.push_back(analyze_group(extract(graph, group), machine).value().cls);
  return out;
}

TEST(PoolPacks, KernelsThatWaitForNoneOfEachOtherShareALaunch) {
  const Graph graph = parse(kProducts).value();
  const Cover cover = cover_planned(candidate_pool(graph, gpu()).value()).value();
  const std::vector<LoopClass> found = classes(graph, cover, gpu());
  EXPECT_THAT(found, ::testing::Contains(LoopClass::kPacked));
  EXPECT_LT(found.size(), 4u);
  const std::string said = explain(graph, cover, gpu()).value().text;
  EXPECT_THAT(said, ::testing::HasSubstr("packed: "));
  EXPECT_THAT(said, ::testing::HasSubstr("side by side"));
}

TEST(PoolPacks, KernelsOfAPathDoNot) {
  const Graph graph = parse(kProducts).value();
  const ColumnPool pool = candidate_pool(graph, gpu()).value();
  int packs = 0;
  for (const PoolColumn& column : pool.columns) {
    if (column.origin != GroupOrigin::kPack) continue;
    ++packs;
    EXPECT_FALSE(std::binary_search(column.ops.begin(), column.ops.end(), 1) &&
                 std::binary_search(column.ops.begin(), column.ops.end(), 3));
    EXPECT_EQ(pool.forms[column.form].cls, LoopClass::kPacked);
  }
  EXPECT_GE(packs, 4);
}

// No kernel depends on the queries, so the product that gives them may be packed with the product of the keys, or with
// the fourth product, which depends on the keys.
TEST(PoolPacks, AnEarlyKernelMayRunWithALateOne) {
  const Graph graph = parse(kProducts).value();
  const ColumnPool pool = candidate_pool(graph, gpu()).value();
  const std::vector<int> queries_and_last = {0, 3};
  EXPECT_TRUE(std::any_of(pool.columns.begin(), pool.columns.end(), [&](const PoolColumn& column) {
    return column.origin == GroupOrigin::kPack && column.ops == queries_and_last;
  }));
}

TEST(PoolPacks, SaveALaunchEachAtLeast) {
  const Graph graph = parse(kProducts).value();
  const ColumnPool pool = candidate_pool(graph, gpu()).value();
  const std::vector<double> micros = form_times(pool, {});
  std::vector<double> apart = micros;
  for (size_t f = 0; f < apart.size(); ++f)
    if (pool.forms[f].cls == LoopClass::kPacked) apart[f] = std::numeric_limits<double>::infinity();
  const PlannedCover with = solve_cover(pool, micros).value(), without = solve_cover(pool, apart).value();
  const double launches = static_cast<double>(without.columns.size() - with.columns.size());
  EXPECT_GE(launches, 2);
  EXPECT_LE(with.total, without.total - 0.99 * launches * rates_of(gpu()).launch_us);
  EXPECT_TRUE(with.proven());
}

// Packing gains nothing if a long kernel already fills the machine.
TEST(PoolPacks, LongKernelsStayApart) {
  const Graph graph = parse(R"(graph {
  %0 = input "x" : f32[16896,4096] normal(0,1)
  %1 = input "a" : f32[4096,1024] normal(0,1)
  %2 = input "b" : f32[4096,1024] normal(0,1)
  %3 = contract %0 %1 "mk,kn->mn" : f32[16896,1024]
  %4 = contract %0 %2 "mk,kn->mn" : f32[16896,1024]
  output "y" %3
  output "z" %4
})")
                          .value();
  const ColumnPool pool = candidate_pool(graph, gpu()).value();
  for (const PoolColumn& column : pool.columns) EXPECT_NE(column.origin, GroupOrigin::kPack);
}

}  // namespace
}  // namespace wl

#include "compiler/schedule/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/domain/domain.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Space tiny() {
  Space space;
  space.kind = "rows";
  space.prefix = "plan 2 target=t class=rows";
  space.axes = {{kUnroll, {1, 2}}, {kPrefetch, {0, 4, 8}}, {kCompiler, {kGcc, kClang}}};
  space.legal = [](const Schedule& s) { return s[kUnroll] == 2 || s[kPrefetch] == 0; };
  return space;
}

Space space_for(std::string_view text, Machine machine = test_machine()) {
  const Graph graph = graph_of(text);
  const absl::StatusOr<Domain> domain = analyze(graph, machine);
  EXPECT_TRUE(domain.ok()) << domain.status();
  const absl::StatusOr<Space> space = space_of(graph, *domain, machine);
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

std::string softmax(int64_t rows, int64_t columns) {
  const std::string full = cat("f32[", rows, ",", columns, "]"), row = cat("f32[", rows, "]");
  return cat("graph {\n%0 = input \"x\" : ", full, "\n%1 = reduce_max %0 axes=[1] : ", row,
             "\n%2 = broadcast %1 dims=[0] : ", full, "\n%3 = sub %0 %2 : ", full, "\n%4 = exp %3 : ", full,
             "\n%5 = reduce_sum %4 axes=[1] : ", row, "\n%6 = broadcast %5 dims=[0] : ", full,
             "\n%7 = div %4 %6 : ", full, "\noutput \"y\" %7\n}\n");
}

TEST(Space, CountsAndEnumeratesLegalPointsInOrder) {
  const Space space = tiny();
  EXPECT_EQ(space.count(), 8u);
  EXPECT_EQ(space.count(3), 3u);
  std::vector<Point> points;
  space.enumerate([&](const Point& point) {
    EXPECT_TRUE(space.is_legal(point));
    points.push_back(point);
    return true;
  });
  EXPECT_EQ(points.size(), 8u);
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
  EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), 8u);
  EXPECT_FALSE(space.is_legal({0, 1, 0}));
  EXPECT_FALSE(space.is_legal({0, 3, 0}));
  EXPECT_FALSE(space.is_legal({0, 0}));
}

TEST(Space, TextRoundTrips) {
  const Space space = tiny();
  EXPECT_EQ(space.text({1, 2, 1}), "plan 2 target=t class=rows unroll=2 prefetch=8 compiler=clang");
  space.enumerate([&](const Point& point) {
    const absl::StatusOr<Point> back = space.parse(space.text(point));
    EXPECT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, point);
    return true;
  });
}

TEST(Space, AnAxisThatAPlanDoesNotNameIsAtItsFirstValue) {
  const absl::StatusOr<Point> point = tiny().parse("plan 2 target=t class=rows unroll=2 prefetch=8");
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(*point, (Point{1, 2, 0}));
}

TEST(Space, ParseSaysWhatIsWrong) {
  const Space space = tiny();
  const auto message = [&](std::string_view text) { return std::string(space.parse(text).status().message()); };
  EXPECT_THAT(message("plan 3"), HasSubstr("expected a plan that begins with \"plan 2 target=t class=rows\""));
  EXPECT_THAT(message("plan 2 target=t class=rows unroll=2 unroll=2"), HasSubstr("given twice"));
  EXPECT_THAT(message("plan 2 target=t class=rows z=2"),
              HasSubstr("unknown axis \"z\"; this space has unroll, prefetch, compiler"));
  EXPECT_THAT(message("plan 2 target=t class=rows prefetch=5"),
              HasSubstr("axis \"prefetch\" has no value \"5\"; it has 0, 4, 8"));
  EXPECT_THAT(message("plan 2 target=t class=rows unroll=1 prefetch=8 compiler=gcc"),
              HasSubstr("not a legal combination"));
  EXPECT_THAT(message("plan 2 target=t class=rows unroll"), HasSubstr("expected name=value"));
}

TEST(Space, ScheduleOfAPoint) {
  const Schedule schedule = tiny().schedule({1, 2, 0});
  EXPECT_EQ(schedule[kPrefetch], 8);
  EXPECT_FALSE(schedule.has(kPackB));
  EXPECT_EQ(schedule[kPackB], 1);  // the value that choices.def gives for a choice that a schedule lacks
  EXPECT_DEATH(schedule[kThreads], "the schedule has no threads");
}

TEST(Space, RowsOfALongSoftmaxPipelineAndStream) {
  const Space space = space_for(softmax(65536, 1024));
  EXPECT_THAT(space.text(space.seeds[0]), StartsWith("plan 2 target=cpu:avx512 class=rows vector=16"));
  const Schedule best = space.schedule(space.seeds[0]);
  EXPECT_EQ(best[kPipeline], 1);
  EXPECT_EQ(best[kStagger], 704);
  EXPECT_EQ(best[kStreamStores], 1);
  EXPECT_EQ(best[kThreads], 2);
  EXPECT_GT(space.count(), 1000u);
  EXPECT_LT(space.count(), 100'000u);
}

// If a row fits only the second-level cache, its last phase prefetches the next row. All phases may be fused although a
// row has several loops.
TEST(Space, LongRowsAreFetchedLateAndPipeline) {
  const std::string full = "f32[64,10,4096]";
  const Space space = space_for(cat("graph {\n%0 = input \"x\" : ", full, "\n%1 = reduce_sum %0 axes=[1,2] : f32[64]",
                                    "\n%2 = broadcast %1 dims=[0] : ", full, "\n%3 = sub %0 %2 : ", full,
                                    "\n%4 = input \"g\" : f32[10]\n%5 = broadcast %4 dims=[1] : ", full,
                                    "\n%6 = mul %3 %5 : ", full, "\noutput \"y\" %6\n}\n"));
  const Schedule first = space.schedule(space.seeds[0]);
  EXPECT_EQ(first[kPrefetchLastPhase], 1);
  EXPECT_GT(first[kPrefetch], 0);
  int pipelined = 0;
  space.enumerate([&](const Point& point) {
    const Schedule schedule = space.schedule(point);
    pipelined += schedule[kPipeline] != 0;
    EXPECT_TRUE(schedule[kPrefetchLastPhase] == 0 || (schedule[kPrefetch] > 0 && schedule[kPipeline] == 0));
    return true;
  });
  EXPECT_GT(pipelined, 0);
}

TEST(Space, SmallOrUnalignedGroupsDoNotStream) {
  const auto streams = [](const Space& space) {
    for (const Axis& axis : space.axes)
      if (axis.choice == kStreamStores) return axis.values.size() > 1;
    return false;
  };
  EXPECT_TRUE(streams(space_for(softmax(4096, 1024))));
  EXPECT_FALSE(streams(space_for(softmax(4096, 1023))));
  EXPECT_FALSE(streams(space_for(softmax(8, 1024))));
}

// A tile of a column reduction may have as many rows as fit into the registers together with the values that all these
// rows read.
TEST(Space, ColumnsThatReadSomethingInCommonAreRowsOfATile) {
  const auto heights = [](const Space& space) {
    std::set<int64_t> found;
    space.enumerate([&](const Point& point) {
      const Schedule schedule = space.schedule(point);
      const int64_t height = schedule[kRegisterRows];
      EXPECT_TRUE(height <= 1 || (height + 1) * schedule[kTileVectors] < 32) << space.text(point);
      return found.insert(height), true;
    });
    return found;
  };
  EXPECT_EQ(heights(space_for(R"(graph {
    %0 = input "x" : f32[24,12,64]
    %1 = input "w" : f32[12,64]
    %2 = broadcast %1 dims=[1,2] : f32[24,12,64]
    %3 = mul %0 %2 : f32[24,12,64]
    %4 = reduce_sum %3 axes=[1] : f32[24,64]
    output "y" %4
  })")),
            (std::set<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(heights(space_for(R"(graph {
    %0 = input "x" : f32[24,12,64]
    %1 = reduce_sum %0 axes=[1] : f32[24,64]
    output "y" %1
  })")),
            std::set<int64_t>{1});
}

// If every iteration of a loop reads the same tables and these exceed a cache, the map is walked in cache blocks.
TEST(Space, MapsThatReadTablesAgainHaveBands) {
  const auto bands = [](int64_t tokens) {
    const std::string full = cat("f32[8,", tokens, ",64]"), table = cat("f32[", tokens, ",64]");
    const Space space = space_for(cat("graph {\n%0 = input \"x\" : ", full, "\n%1 = input \"t\" : ", table,
                                      "\n%2 = input \"u\" : f32[64]\n%3 = broadcast %1 dims=[1,2] : ", full,
                                      "\n%4 = broadcast %2 dims=[2] : ", full, "\n%5 = fma %0 %3 %4 : ", full,
                                      "\noutput \"y\" %5\n}\n"));
    EXPECT_EQ(space.schedule(space.seeds[0])[kCacheBlockRows] > 0, tokens == 4096);
    return std::any_of(space.axes.begin(), space.axes.end(),
                       [](const Axis& axis) { return axis.choice == kCacheBlockRows; });
  };
  EXPECT_TRUE(bands(4096));
  EXPECT_FALSE(bands(64));
}

TEST(Space, EveryClassHasLegalDistinctSeedsForEveryCompiler) {
  Machine both = test_machine();
  both.clang = true;
  const std::string groups[] = {
      softmax(512, 256),
      softmax(3, 5),
      "graph {\n%0 = input \"x\" : f32[]\n%1 = exp %0 : f32[]\noutput \"y\" %1\n}",
      "graph {\n%0 = input \"x\" : f32[0,4]\n%1 = exp %0 : f32[0,4]\noutput \"y\" %1\n}",
      "graph {\n%0 = input \"x\" : f32[70000]\n%1 = exp %0 : f32[70000]\noutput \"y\" %1\n}",
      "graph {\n%0 = input \"x\" : f32[64,48]\n%1 = transpose %0 perm=[1,0] : f32[48,64]\noutput \"y\" %1\n}",
      "graph {\n%0 = input \"x\" : f32[64,480]\n%1 = reduce_sum %0 axes=[0] : f32[480]\noutput \"y\" %1\n}",
      "graph {\n%0 = input \"x\" : f32[64,480]\n%1 = reduce_sum %0 axes=[0,1] : f32[]\noutput \"y\" %1\n}",
      "graph {\n%0 = input \"x\" : f32[64,48]\n%1 = input \"w\" : f32[48,32]\n"
      "%2 = contract %0 %1 \"mk,kn->mn\" : f32[64,32]\noutput \"y\" %2\n}",
  };
  for (const std::string& group : groups) {
    const Space space = space_for(group, both);
    ASSERT_FALSE(space.seeds.empty());
    std::set<Point> distinct;
    std::set<int64_t> compilers;
    for (const Point& seed : space.seeds) {
      EXPECT_TRUE(space.is_legal(seed)) << space.text(seed);
      EXPECT_TRUE(distinct.insert(seed).second) << space.text(seed);
      EXPECT_EQ(*space.parse(space.text(seed)), seed);
      compilers.insert(space.schedule(seed)[kCompiler]);
    }
    EXPECT_THAT(compilers, ElementsAre(0, 1)) << group;
    EXPECT_GE(space.count(), 2u);
  }
}

TEST(Space, AMachineWithoutACompilerIsAnError) {
  Machine machine = test_machine();
  machine.gcc = machine.clang = false;
  const Graph graph = graph_of(softmax(4, 4));
  EXPECT_THAT(std::string(space_of(graph, *analyze(graph, machine), machine).status().message()),
              HasSubstr("neither gcc nor clang"));
}

}  // namespace
}  // namespace wl

#include "compiler/search/nearest.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"

namespace wl {
namespace {

std::string add_graph(int rows, int columns) {
  const std::string type = cat("f32[", rows, ",", columns, "]");
  return cat("graph {\n  %0 = input \"x\" : ", type, " normal(0,1)\n  %1 = input \"y\" : ", type,
             " normal(0,1)\n  %2 = add %0 %1 : ", type, "\n  output \"z\" %2\n}\n");
}

Graph graph_of(const std::string& text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Space tiles() {
  Space space;
  space.kind = "map";
  space.prefix = "plan 2 target=cpu:avx2 class=map";
  space.axes = {{kTileElements, {16, 32, 64, 128}}};
  return space;
}

std::string plan(int tile) {
  return cat("plan 2 target=cpu:avx2 class=map tile_elements=", tile);
}

TEST(Nearest, OrdersByOpsAndSizes) {
  const Graph here = graph_of(add_graph(64, 1024));
  EXPECT_EQ(unlikeness(here, here), 0);
  EXPECT_EQ(unlikeness(here, graph_of(add_graph(64, 512))), 1);
  EXPECT_EQ(unlikeness(here, graph_of(add_graph(8, 512))), 4);
}

TEST(Nearest, OffersWhatWonNearbyOnce) {
  const Graph here = graph_of(add_graph(64, 1024));
  const std::vector<KnownPlan> known = {
      {add_graph(16, 1024), plan(16), 1.5},
      {add_graph(64, 512), plan(32), 1.5},
      {add_graph(64, 2048), plan(32), 1.5},
      {add_graph(64, 1024), plan(64), 1.0},  // not offered: the default schedule won
      {add_graph(1, 1), plan(128), 9},       // not offered: the group has a very different size
      // not offered: the space lacks the choice `team`
      {add_graph(64, 1024), "plan 2 target=cpu:avx2 class=map team=4", 2},
      // not offered: the plan is of another class
      {add_graph(64, 1024), "plan 2 target=cpu:avx2 class=rows tile_elements=64", 2},
      {add_graph(64, 1024), "plan 2 target=cuda:sm_90a class=map tile_elements=64",
       2.0},  // not offered: a plan for a GPU tells nothing about a CPU
      {"no graph", plan(64), 2.0},
  };
  EXPECT_EQ(nearest_winners(here, tiles(), known, 4), (std::vector<Point>{{1}, {0}}));
  EXPECT_EQ(nearest_winners(here, tiles(), known, 1), (std::vector<Point>{{1}}));
}

// Plans that won on another target come after those that won on the target of the search. Their values are rounded to
// values of the search's space.
TEST(Nearest, OffersWhatWonOnOtherTargets) {
  const Graph here = graph_of(add_graph(64, 1024));
  const std::vector<KnownPlan> known = {
      {add_graph(64, 1024), "plan 2 target=cpu:avx512 class=map tile_elements=100", 1.5},
      {add_graph(64, 512), plan(16), 1.5},
  };
  EXPECT_EQ(nearest_winners(here, tiles(), known, 4), (std::vector<Point>{{0}, {3}}));
}

TEST(Nearest, TargetsAreNearWhereTheirCodeIsAlike) {
  EXPECT_EQ(target_distance("cuda:sm_80", "cuda:sm_80"), 0);
  EXPECT_LT(target_distance("cuda:sm_80", "cuda:sm_90a"), target_distance("cuda:sm_80", "hip:gfx90a"));
  EXPECT_EQ(target_distance("cuda:sm_80", "cpu:avx2"), std::nullopt);
}

TEST(Nearest, APlanIsTranslatedOrNothing) {
  Space space = tiles();
  space.axes.push_back({kUnroll, {1, 2, 4}});
  space.legal = [](const Schedule& s) { return s[kTileElements] * s[kUnroll] <= 256; };
  // Values that the space lacks are rounded to values that it has: tile_elements=48 to 64, and unroll=8 to 4.
  EXPECT_EQ(translated(space, "plan 2 target=cpu:avx512 class=map tile_elements=48 unroll=8"), (Point{2, 2}));
  EXPECT_EQ(translated(space, "plan 2 target=cpu:avx2 class=map tile_elements=16"),
            (Point{0, 0}));  // the plan is older than the choice `unroll`, so that choice gets its first value
  EXPECT_EQ(translated(space, "plan 2 target=cpu:avx512 class=map tile_elements=128 unroll=4"),
            std::nullopt);  // not translated: the point with these values is not legal
  // A plan of version 1 for another target is translated as well.
  EXPECT_EQ(translated(space, "plan 1 target=cpu:avx512 class=map tile=48 unroll=8"), (Point{2, 2}));
  EXPECT_EQ(translated(space, "plan 2 target=cpu:avx512 class=rows tile_elements=16"), std::nullopt);
  EXPECT_EQ(translated(space, "plan 2 target=cpu:avx512 class=map tile_elements=16 team=2"), std::nullopt);
}

}  // namespace
}  // namespace wl

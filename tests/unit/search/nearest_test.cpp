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
  space.prefix = "plan 1 target=cpu:avx2 class=map";
  space.axes = {{"tile", {16, 32, 64, 128}}};
  return space;
}

std::string plan(int tile) {
  return cat("plan 1 target=cpu:avx2 class=map tile=", tile);
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
      {add_graph(64, 1024), plan(64), 1.0},                                       // the default won
      {add_graph(1, 1), plan(128), 9},                                            // nothing like it
      {add_graph(64, 1024), plan(256), 2},                                        // not in this space
      {add_graph(64, 1024), "plan 1 target=cuda:sm_90a class=map tile=64", 2.0},  // another target
      {"no graph", plan(64), 2.0},
  };
  EXPECT_EQ(nearest_winners(here, tiles(), known, 4), (std::vector<Point>{{1}, {0}}));
  EXPECT_EQ(nearest_winners(here, tiles(), known, 1), (std::vector<Point>{{1}}));
}

}  // namespace
}  // namespace wl

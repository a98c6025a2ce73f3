// The text of a group does not depend on names or on the order of nodes, and PartGraph allows exactly those merges that
// do not create a cycle.
#include <gtest/gtest.h>

#include <random>

#include "compiler/cover/part_graph.h"
#include "compiler/domain/group_order.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

Group whole(const Graph& graph) {
  Group group;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    (graph.nodes[id].op == Op::input ? group.reads : group.ops).push_back(id);
  for (const Output& output : graph.outputs) group.stores.push_back(output.node);
  return in_order(graph, std::move(group));
}

std::string text_of(std::string_view text) {
  const Graph graph = graph_of(text);
  return print(extract(graph, whole(graph)));
}

constexpr std::string_view kResidual = R"(graph {
    %0 = input "x" : f32[8,16]
    %1 = input "y" : f32[8,16]
    %2 = input "b" : f32[16]
    %3 = broadcast %2 dims=[1] : f32[8,16]
    %4 = add %0 %3 : f32[8,16]
    %5 = add %4 %1 : f32[8,16]
    %6 = exp %5 : f32[8,16]
    %7 = tanh %5 : f32[8,16]
    %8 = mul %6 %7 : f32[8,16]
    output "sum" %5
    output "o" %8
  })";

TEST(GroupOrder, DoesNotDependOnNumbersNamesOrUnits) {
  const std::string expected = text_of(kResidual);
  EXPECT_EQ(text_of(R"(graph {
    %0 = input "bias" : f32[16]
    %1 = input "late" : f32[8,16]
    %2 = broadcast %0 dims=[1] : f32[8,16]
    %3 = input "early" : f32[1,8,1,16]
    %4 = reshape %3 : f32[8,16]
    %5 = add %2 %4 : f32[8,16]
    %6 = add %1 %5 : f32[8,16]
    %7 = tanh %6 : f32[8,16]
    %8 = exp %6 : f32[8,16]
    %9 = mul %7 %8 : f32[8,16]
    %10 = reshape %9 : f32[1,8,16]
    output "o" %10
    output "sum" %6
  })"),
            expected);
  EXPECT_NE(text_of(R"(graph {
    %0 = input "x" : f32[8,16]
    %1 = input "y" : f32[8,16]
    %2 = input "b" : f32[16]
    %3 = broadcast %2 dims=[1] : f32[8,16]
    %4 = add %0 %1 : f32[8,16]
    %5 = add %4 %3 : f32[8,16]
    %6 = exp %5 : f32[8,16]
    %7 = tanh %5 : f32[8,16]
    %8 = mul %6 %7 : f32[8,16]
    output "sum" %5
    output "o" %8
  })"),
            expected)
      << "sums are not reassociated";
}

TEST(GroupOrder, ExtractedGroupsAreInOrder) {
  const Graph graph = graph_of(kResidual);
  const Graph once = extract(graph, whole(graph));
  EXPECT_EQ(print(extract(once, whole(once))), print(once));
}

// Returns whether a path of at least two edges leads from `from` to `to`. Merging the two nodes would make that path a
// cycle.
bool detour(const PartGraph& graph, int from, int to) {
  std::vector<int> todo;
  for (int next : graph.after(from))
    if (next != to) todo.push_back(next);
  std::set<int> seen;
  while (!todo.empty()) {
    const int part = todo.back();
    todo.pop_back();
    if (part == to) return true;
    if (!seen.insert(part).second) continue;
    todo.insert(todo.end(), graph.after(part).begin(), graph.after(part).end());
  }
  return false;
}

TEST(PartGraph, MergesExactlyWhatMakesNoCycle) {
  int merged = 0, refused = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const int count = 3 + static_cast<int>(random() % 25);
    PartGraph graph(count);
    std::set<int> alive;
    for (int to = 0; to < count; ++to) {
      alive.insert(to);
      for (int k = 0; k < 2 && to > 0; ++k)
        if (random() % 4 != 0) graph.add_edge(static_cast<int>(random() % static_cast<uint64_t>(to)), to);
    }
    for (int tries = 0; tries < 60 && alive.size() > 1; ++tries) {
      auto at = alive.begin();
      std::advance(at, random() % alive.size());
      const int from = *at;
      if (graph.after(from).empty()) continue;
      auto next = graph.after(from).begin();
      std::advance(next, random() % graph.after(from).size());
      const int to = *next;
      const bool may = graph.may_merge(from, to);
      ASSERT_EQ(may, !detour(graph, from, to)) << "seed " << seed << ": " << from << " -> " << to;
      ++(may ? merged : refused);
      if (!may) continue;
      graph.merge(from, to);
      alive.erase(to);
      for (int part : alive) {
        EXPECT_FALSE(graph.after(part).contains(to) || graph.before(part).contains(to));
        for (int reader : graph.after(part)) EXPECT_TRUE(graph.before(reader).contains(part));
      }
    }
  }
  EXPECT_GT(merged, 1000);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace wl

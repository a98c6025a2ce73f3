#include "compiler/cover/explain.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "compiler/cover/cover.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

TEST(Explain, SaysWhyNeighboursAreNoOneKernel) {
  // One stitched kernel cannot compute this graph: the maximum over all elements must be known before any block can go
  // on.
  const Graph graph = parse(R"(graph {
  %0 = input "x" : f32[64,64] normal(0,1)
  %1 = input "w" : f32[64,64] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[64,64]
  %3 = reduce_max %2 axes=[0,1] : f32[]
  %4 = broadcast %3 dims=[] : f32[64,64]
  %5 = sub %2 %4 : f32[64,64]
  output "y" %5
})")
                          .value();
  const auto made = explain(graph, cover_greedy(graph, test_machine()).value(), test_machine());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_NE(made->text.find("not one kernel: "), std::string::npos) << made->text;
  EXPECT_NE(made->text.find("nor can the group be divided among blocks: "), std::string::npos) << made->text;
  // Headings have the numbers of this graph, and reasons, which are found in a group's graph, have none.
  EXPECT_NE(made->text.find("g1: %3 reduce_max"), std::string::npos) << made->text;
  EXPECT_FALSE(std::regex_search(made->text, std::regex("not one kernel: [^\n]*%"))) << made->text;
}

}  // namespace
}  // namespace wl

// Which groups the cover "stitched" joins.
#include <gtest/gtest.h>

#include "compiler/base/status.h"
#include "compiler/cover/cover.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

// Attention of 8 heads over `n` positions; the keys are projected first.
std::string attention(int64_t n) {
  const std::string scores = cat("f32[8,", n, ",", n, "]\n"), rows = cat("f32[8,", n, "]\n");
  return cat(
      "graph {\n  %0 = input \"x\" : f32[", n, ",512] normal(0,1)\n  %1 = input \"w\" : f32[8,512,64] normal(0,1)\n",
      "  %2 = input \"q\" : f32[8,", n, ",64] normal(0,1)\n  %3 = input \"v\" : f32[8,", n, ",64] normal(0,1)\n",
      "  %4 = contract %0 %1 \"mk,nku->mnu\" : f32[", n, ",8,64]\n", "  %5 = transpose %4 perm=[1,2,0] : f32[8,64,", n,
      "]\n", "  %6 = contract %2 %5 \"bmk,bkn->bmn\" : ", scores, "  %7 = reduce_max %6 axes=[2] : ", rows,
      "  %8 = broadcast %7 dims=[0,1] : ", scores, "  %9 = sub %6 %8 : ", scores, "  %10 = exp %9 : ", scores,
      "  %11 = reduce_sum %10 axes=[2] : ", rows, "  %12 = rcp %11 : ", rows,
      "  %13 = broadcast %12 dims=[0,1] : ", scores, "  %14 = mul %10 %13 : ", scores,
      "  %15 = contract %14 %3 \"bmk,bkn->bmn\" : f32[8,", n, ",64]\n  output \"y\" %15\n}\n");
}

size_t groups_of(int64_t n) {
  const Graph graph = graph_of(attention(n));
  Machine machine = test_machine();
  machine.l2_bytes = 2 << 20;
  const Cover greedy = cover_greedy(graph, machine).value();
  const Cover cover = cover_stitched(graph, machine, greedy).value();
  EXPECT_LT(cover.groups.size(), greedy.groups.size());
  return cover.groups.size();
}

// A head's attention and the projection of its keys are not computed in one pass over the keys, so a block would keep
// all scores of the head. Once the scores exceed a thread's cache, that costs more than storing the keys.
TEST(CoverStitched, JoinsNoProjectionWhereScoresLeaveTheCache) {
  EXPECT_EQ(groups_of(256), 1u);
  EXPECT_EQ(groups_of(1536), 2u);
}

}  // namespace
}  // namespace wl

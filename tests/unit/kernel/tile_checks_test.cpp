// Which layouts may be combined: what verify() demands of the layouts of arguments, folds, crosses and views.
#include "compiler/kernel/tile_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/kernel/builder.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

Layout layout(const char* text) {
  return parse_layout(text).value();
}

TEST(TileChecks, ArgumentsAreInTheThreadsOfTheResult) {
  const Layout result = layout("[4,64] dim0=r0 l4; dim1=v0 v1 l0 l1 l2 l3");
  EXPECT_EQ(read_problem(result, result), "");
  EXPECT_EQ(read_problem(layout("[4,1] bits [2,0] outer 1r 1r bases l0=0 l1=0 l2=0 l3=0 l4=2 r0=1"), result), "");
  EXPECT_EQ(read_problem(layout("[1,64] dim1=v0 v1 l0 l1 l2 l3"), result), "");
  EXPECT_EQ(read_problem(layout("[1,1]"), result), "");
  EXPECT_THAT(read_problem(layout("[1,64] dim1=v0 v1 l1 l0 l2 l3"), result), HasSubstr("threads do not hold"));
  EXPECT_THAT(read_problem(layout("[4,1] dim0=r0 r1"), result), HasSubstr("threads do not hold"));
  EXPECT_THAT(read_problem(layout("[1,64] dim1=l0 l1 l2 l3 4r"), result), HasSubstr("threads do not hold"));
  // Refused: an operand whose registers are in another order than the result's, and an operand without the result's
  // register bit that moves along both axes.
  const Layout order = layout("[8] dim0=r0 l0 r1");
  EXPECT_THAT(read_problem(layout("[8] dim0=r1 l0 r0"), order), HasSubstr("not in the order"));
  const Layout both = layout("[2,2] bits [1,1] outer 1r 1r bases l0=2 r0=3");
  EXPECT_THAT(read_problem(layout("[1,2] dim1=l0"), both), HasSubstr("not in the order"));
  EXPECT_EQ(read_problem(layout("[2,1] dim0=r0"), both), "");
}

TEST(TileChecks, FoldsStayWithinThreads) {
  const Layout from = layout("[4,64] dim0=r0 l3; dim1=v0 v1 l0 l1 l2 4r");
  const char* const kept = "[4,32] dim0=r0 l3; dim1=v0 v1 l0 l1 l2";
  EXPECT_EQ(fold_problem(from, layout(kept), {1}), "");
  EXPECT_THAT(fold_problem(from, layout("[4,1] bits [2,0] outer 1r 1r bases l0=0 l1=0 l2=0 l3=2 r0=1"), {1}),
              HasSubstr("keeps its lanes"));
  EXPECT_THAT(fold_problem(from, layout("[4,4] bits [2,2] outer 1r 1r bases v0=4 v1=8 l0=0 l1=0 l2=0 l3=2 r0=1"), {1}),
              HasSubstr("apart"));
  EXPECT_THAT(fold_problem(from, from, {1}), HasSubstr("one register"));
}

TEST(TileChecks, CrossesAreOfTheLanesOfTheirAxes) {
  const Layout from = layout("[4,32] dim0=r0 l3; dim1=v0 v1 l0 l1 l2");
  const char* const kept = "[4,1] bits [2,0] outer 1r 1r bases l0=0 l1=0 l2=0 l3=2 r0=1";
  EXPECT_EQ(cross_problem(from, layout(kept), {1}), "");
  EXPECT_THAT(cross_problem(from, layout("[4,1] dim0=r0 r1"), {1}), HasSubstr("keeps the lanes of other axes"));
  EXPECT_THAT(cross_problem(from, from, {1}), HasSubstr("leaves no lanes"));
  EXPECT_THAT(cross_problem(layout("[2,2] bits [1,1] outer 1r 1r bases l0=3 l1=1"), layout("[2,1] dim0=l0"), {1}),
              HasSubstr("move along other axes too"));
  EXPECT_EQ(cross_problem(layout("[1,64] dim1=l0 l1 l2 l3 l4 u0"), layout("[1,2] dim1=u0"), {1}), "");
  EXPECT_THAT(cross_problem(layout("[1,64] dim1=l0 l1 l2 l3 l4 u0"), layout("[1,1]"), {1}), HasSubstr("leaves waves"));
  EXPECT_THAT(cross_problem(layout("[1,8] dim1=l0 l1 2r"), layout("[1,1]"), {1}), HasSubstr("one register"));
}

// A tile in a layout for 64 threads is viewed as another shape: the layout is the same, but one of its axes is split.
TEST(TileChecks, ViewsKeepWhatRegistersHold) {
  const auto problem = [](const Layout& from, const Layout& to) {
    Kernel kernel;
    kernel.wave = 32;
    kernel.team = kernel.threads = 64;
    kernel.tiles = {{DType::f32, from, {}}, {DType::f32, to, {}}};
    return view_problem(kernel, view_instr(1, 0));
  };
  const Layout sums = repeated(fragments_of(MatrixOp::kM16n8k16Bf16).c, {Repeats{1, {0}}, Repeats{2, {}}});
  const Layout dealt = dealt_layout({48, 32}, {{2, 'r', {2, 3, 4}}, {4, 'v', {0, 1}}}, 64, 32);
  for (const int64_t width : {1, 2, 4, 8, 16, 32}) {
    EXPECT_EQ(problem(sums, split_axis(sums, 0, width)), "") << width;
    EXPECT_EQ(problem(sums, split_axis(sums, 1, std::max<int64_t>(2, width))), "") << width;  // vectors have 2 elements
    EXPECT_EQ(problem(dealt, split_axis(dealt, 0, std::min<int64_t>(16, width))), "") << width;
    EXPECT_TRUE(split_axis(sums, 0, width).check().ok());
  }
  const Layout both = split_axis(split_axis(sums, 1, 8), 0, 16);
  EXPECT_EQ(both.shape, (std::vector<int64_t>{4, 16, 4, 8}));
  EXPECT_EQ(problem(sums, both), "");
  Layout other = both;
  std::swap(other.bases[1], other.bases[2]);
  EXPECT_THAT(problem(sums, other), HasSubstr("would hold another element"));
  EXPECT_THAT(problem(sums, repeated(sums, {Repeats{1}, Repeats{}})), HasSubstr("number of elements"));
  EXPECT_THAT(problem(sums, dealt_layout({64, 32}, {{1, 'r', {0, 1, 2, 3, 4, 5}}, {1, 'r', {}}}, 64, 32)),
              HasSubstr("registers"));
}

}  // namespace
}  // namespace wl

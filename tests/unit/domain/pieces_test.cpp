// Pads and concats of inputs: the guards that remain, and the order in which pieces are tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/domain/merged_columns.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Checks the domain of a graph and returns the domain's text.
std::string domain_text(std::string_view text) {
  const Graph graph = graph_of(text);
  const absl::StatusOr<Domain> domain = analyze(graph, test_machine());
  EXPECT_TRUE(domain.ok()) << domain.status();
  if (!domain.ok()) return "";
  EXPECT_EQ(check_domain(graph, *domain), "") << domain->text();
  return domain->text();
}

TEST(Pieces, APadIsAGuardedReadAndItsFill) {
  EXPECT_THAT(domain_text(R"(graph {
    %0 = input "x" : f32[5,8]
    %1 = pad %0 low=[0,1] high=[0,2] value=3 : f32[5,11]
    %2 = exp %1 : f32[5,11]
    output "y" %2
  })"),
              HasSubstr("(%0+-1+8*d0+1*d1 where -1+1*d1 of 8 | 3)"));
}

TEST(Pieces, WhatIsCutOffAgainNeedsNoGuard) {
  EXPECT_THAT(domain_text(R"(graph {
    %0 = input "x" : f32[5,8]
    %1 = pad %0 low=[2,1] high=[0,2] value=3 : f32[7,11]
    %2 = slice %1 starts=[2,8] steps=[1,-1] : f32[5,8]
    %3 = exp %2 : f32[5,8]
    output "y" %3
  })"),
              Not(HasSubstr("where")));
}

TEST(Pieces, PadsOfPadsWithOneFillAreOneGuardEach) {
  EXPECT_THAT(domain_text(R"(graph {
    %0 = input "x" : f32[8]
    %1 = pad %0 low=[1] high=[1] value=3 : f32[10]
    %2 = pad %1 low=[2] high=[0] value=3 : f32[12]
    %3 = exp %2 : f32[12]
    output "y" %3
  })"),
              HasSubstr("(%0+-3+1*d0 where -3+1*d0 of 8 | 3)"));
}

TEST(Pieces, PadsOfPadsWithAnotherFillAreThreePieces) {
  EXPECT_THAT(domain_text(R"(graph {
    %0 = input "x" : f32[8]
    %1 = pad %0 low=[1] high=[1] value=3 : f32[10]
    %2 = pad %1 low=[2] high=[0] value=4 : f32[12]
    %3 = exp %2 : f32[12]
    output "y" %3
  })"),
              HasSubstr("(%0+-3+1*d0 where -3+1*d0 of 8 | 3 where -2+1*d0 of 10 | 4)"));
}

TEST(Pieces, AConcatIsItsOperandsInTurn) {
  EXPECT_THAT(domain_text(R"(graph {
    %0 = input "x" : f32[3,4]
    %1 = input "y" : f32[3,2]
    %2 = iota axis=[1] : f32[3,5]
    %3 = concat %0 %1 %2 axis=[1] : f32[3,11]
    output "z" %3
  })"),
              HasSubstr("(%0+0+4*d0+1*d1 where 0+1*d1 of 4 | %1+-4+2*d0+1*d1 where -4+1*d1 of 2 | "
                        "%2+-6+1*d1 where -6+1*d1 of 5 | 0)"));
}

TEST(Pieces, AnEmptyOperandIsNoPiece) {
  EXPECT_THAT(domain_text(R"(graph {
    %0 = input "x" : f32[3,0]
    %1 = input "y" : f32[3,2]
    %2 = concat %0 %1 axis=[1] : f32[3,2]
    output "z" %2
  })"),
              Not(HasSubstr("|")));
}

constexpr const char* kConvolution = R"(graph {
    %0 = input "x" : f32[1,4,6,7]
    %1 = input "w" : f32[5,4,3,3]
    %2 = pad %0 low=[0,0,1,1] high=[0,0,1,1] value=0 : f32[1,4,8,9]
    %3 = window %2 axes=[2,3] params=[3,1,1,3,1,1] : f32[1,4,6,7,3,3]
    %4 = contract %3 %1 "acpqhi,ochi->aopq" : f32[1,5,6,7]
    %5 = tanh %4 : f32[1,5,6,7]
    output "y" %5
  })";

TEST(Pieces, AConvolutionsColumnsAreThePixels) {
  EXPECT_THAT(domain_text(kConvolution), HasSubstr("swapped"));
  const absl::StatusOr<Domain> domain = analyze(graph_of(kConvolution), test_machine());
  const std::optional<MergedColumns> merged = merged_columns(*domain);
  ASSERT_TRUE(merged.has_value());
  ASSERT_EQ(merged->domain.n.size(), 1u);
  EXPECT_EQ(merged->domain.atoms[merged->domain.n[0]].extent, 42);
  EXPECT_EQ(merged->domain.stores[0].access.strides[merged->height], 1);
}

TEST(Pieces, PixelsThatAreReadInAnotherOrderStayTwoLoops) {
  std::string text = kConvolution;
  const std::string tail = "%5 = tanh %4 : f32[1,5,6,7]";
  text.replace(text.find(tail), tail.size(), R"(%6 = input "r" : f32[1,5,7,6]
    %7 = transpose %6 perm=[0,1,3,2] : f32[1,5,6,7]
    %5 = add %4 %7 : f32[1,5,6,7])");
  const absl::StatusOr<Domain> domain = analyze(graph_of(text), test_machine());
  ASSERT_TRUE(domain.ok()) << domain.status();
  EXPECT_FALSE(merged_columns(*domain).has_value());
}

}  // namespace
}  // namespace wl

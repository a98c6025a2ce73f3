// Groups that are not one loop nest, and their error messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/domain/domain.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  absl::StatusOr<Domain> domain = analyze(graph_of(text), test_machine());
  return domain.ok() ? "accepted:\n" + domain->text() : std::string(domain.status().message());
}

TEST(DomainErrors, GatherFromAComputedValueIsCut) {
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,10]
    %1 = input "label" : i64[6,1] uniform(0,10)
    %2 = exp %0 : f32[6,10]
    %3 = take_along %2 %1 axis=[1] : f32[6,1]
    output "y" %3
  })"),
              HasSubstr("%3 take_along [6,1]: takes elements of %2"));
}

TEST(DomainErrors, ReshapesThatDoNotNestAreCut) {
  EXPECT_THAT(
      error_of(R"(graph {
    %0 = input "x" : f32[12,64]
    %1 = exp %0 : f32[12,64]
    %2 = reshape %1 : f32[3,256]
    %3 = reshape %2 : f32[32,24]
    %4 = exp %3 : f32[32,24]
    output "y" %4
  })"),
      HasSubstr("%3 reshape [32,24]: cuts axes that %2 reshape [3,256] (loops 3*4*64) does not have: not one loop"));
}

TEST(DomainErrors, OperandsThatCutAnAxisDifferently) {
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[4,6]
    %1 = input "y" : f32[6,4]
    %2 = transpose %0 perm=[1,0] : f32[6,4]
    %3 = reshape %2 : f32[24]
    %4 = transpose %1 perm=[1,0] : f32[4,6]
    %5 = reshape %4 : f32[24]
    %6 = add %3 %5 : f32[24]
    output "o" %6
  })"),
              HasSubstr("%6 add [24]: operand %5 reshape [24] cuts an axis as 4*6, the loop as 6*4"));
}

TEST(DomainErrors, IllegalGroupsSayWhy) {
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,4]
    %1 = exp %0 : f32[6,4]
    %2 = slice %1 starts=[0,1] steps=[1,1] : f32[6,2]
    %3 = exp %2 : f32[6,2]
    output "y" %3
  })"),
              HasSubstr("%2 slice [6,2]: moves elements of %1"));
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,6]
    %1 = exp %0 : f32[6,6]
    %2 = transpose %1 perm=[1,0] : f32[6,6]
    %3 = add %1 %2 : f32[6,6]
    output "y" %3
  })"),
              HasSubstr("one axis of the loop would be two axes"));
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,4]
    %1 = reduce_sum %0 axes=[1] : f32[6]
    %2 = reduce_sum %1 axes=[0] : f32[]
    output "y" %2
  })"),
              HasSubstr("%1 reduce_sum [6] reduces loops [4], %2 reduce_sum [] reduces loops [6]"));
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,4]
    %1 = input "y" : f32[8]
    %2 = exp %0 : f32[6,4]
    %3 = exp %1 : f32[8]
    output "a" %2
    output "b" %3
  })"),
              HasSubstr("it would be stored that many times"));
  // Error cases: a contraction that sums nothing, and a loop that only a later op has.
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[1,5]
    %1 = contract %0 %0 "ab,ab->ba" : f32[5,1]
    %2 = broadcast %1 dims=[2,3] : f32[2,2,5,1]
    %3 = reduce_prod %2 axes=[3] : f32[2,2,5]
    output "y" %3
  })"),
              HasSubstr("%1 contract [5,1]: does not move along a loop of 4 that the group has"));
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,4]
    %1 = input "y" : f32[6,5]
    %2 = reduce_sum %0 axes=[1] : f32[6]
    %3 = broadcast %2 dims=[0] : f32[6,5]
    %4 = add %1 %3 : f32[6,5]
    output "a" %4
  })"),
              HasSubstr("%2 reduce_sum [6]: does not move along a loop of 5"));
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,6]
    %1 = exp %0 : f32[6,6]
    %2 = contract %1 %1 "mk,nk->mn" : f32[6,6]
    output "a" %2
  })"),
              HasSubstr("one axis of the loop would be two axes"));
  EXPECT_THAT(error_of(R"(graph {
    %0 = input "x" : f32[6,4]
    %1 = input "w" : f32[4,5]
    %2 = contract %0 %1 "mk,kn->mn" : f32[6,5]
    %3 = reduce_sum %2 axes=[1] : f32[6]
    output "a" %3
  })"),
              HasSubstr("a contraction and a reduction are two loops"));
}

}  // namespace
}  // namespace wl

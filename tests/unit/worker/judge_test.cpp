#include "worker/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace wl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInf = std::numeric_limits<double>::infinity();

Problem problem() {
  Problem made;
  BufferSpec spec;
  spec.name = "y";
  spec.shape = {4, 5};
  spec.output = true;
  made.buffers = {spec};
  return made;
}

Verdict judged(double expected, double bound, double got) {
  Check check;
  check.samples = {{0, 7, expected, bound}};
  return judge(problem(), check, {got});
}

TEST(Judge, BoundIsInclusive) {
  EXPECT_TRUE(judged(1, 0.25, 1.25).right);
  EXPECT_FALSE(judged(1, 0.25, 1.2500001).right);
  EXPECT_TRUE(judged(3, 0, 3).right);
  EXPECT_FALSE(judged(3, 0, std::nextafter(3, 4)).right);
}

TEST(Judge, NanAndInfinityMustMatch) {
  EXPECT_TRUE(judged(std::nan(""), 0, std::nan("")).right);
  EXPECT_FALSE(judged(std::nan(""), kInf, 0).right);
  EXPECT_FALSE(judged(0, kInf, std::nan("")).right);
  EXPECT_TRUE(judged(kInf, 0, kInf).right);
  EXPECT_FALSE(judged(kInf, 1e300, -kInf).right);
  EXPECT_FALSE(judged(kInf, 1e300, 1e300).right);
  EXPECT_FALSE(judged(1e300, 1e300, kInf).right);
}

TEST(Judge, ReportsTheSampleClosestToItsBound) {
  Check check;
  check.samples = {{0, 0, 1, 1}, {0, 1, 1, 0.1}, {0, 2, 1, 10}};
  const Verdict verdict = judge(problem(), check, {1.5, 1.09, 3});
  EXPECT_TRUE(verdict.right);
  EXPECT_NEAR(verdict.max_error, 0.09, 1e-12);
  EXPECT_EQ(verdict.bound, 0.1);
  EXPECT_THAT(verdict.message, IsEmpty());
}

TEST(Judge, SaysWhatIsWrong) {
  Check check;
  check.samples = {{0, 0, 1, 1}, {0, 7, 1, 0.1}};
  const Verdict verdict = judge(problem(), check, {1, 4});
  EXPECT_FALSE(verdict.right);
  EXPECT_THAT(verdict.message, HasSubstr("y(1, 2): expected 1, got 4, bound 0.1; 1 of 2 samples are wrong"));
}

TEST(Judge, Coordinates) {
  EXPECT_EQ(coordinates({}, 0), "()");
  EXPECT_EQ(coordinates({2, 3, 4}, 23), "(1, 2, 3)");
}

}  // namespace
}  // namespace wl

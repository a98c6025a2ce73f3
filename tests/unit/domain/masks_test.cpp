// Which products of a contraction must be computed, given the conditions on coordinates in its group.
#include "compiler/domain/masks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

constexpr int64_t kM = 10, kN = 13, kK = 11;

// A product of a: f32[10,11] and c: f32[11,13], with coordinates and constants for masks: %2 to %4 are m - k, n - k and
// m - n as i64, %5 to %7 are the constant 3 of the same types, %8 to %10 are zeros of the types of a, c and the result.
Graph product(const std::string& lines, const std::string& output) {
  std::string text = R"(graph {
  %0 = input "a" : f32[10,11]
  %1 = input "c" : f32[11,13]
  %20 = iota axis=[0] : i64[10,11]
  %21 = iota axis=[1] : i64[10,11]
  %2 = sub %20 %21 : i64[10,11]
  %22 = iota axis=[1] : i64[11,13]
  %23 = iota axis=[0] : i64[11,13]
  %3 = sub %22 %23 : i64[11,13]
  %24 = iota axis=[0] : i64[10,13]
  %25 = iota axis=[1] : i64[10,13]
  %4 = sub %24 %25 : i64[10,13]
  %5 = constant 3 : i64[10,11]
  %6 = constant 3 : i64[11,13]
  %7 = constant 3 : i64[10,13]
  %8 = constant 0 : f32[10,11]
  %9 = constant 0 : f32[11,13]
  %10 = constant 0 : f32[10,13]
)";
  return graph_of(cat(text, lines, "\n  output \"y\" %", output, "\n}"));
}

struct Case {
  const char* name;
  // lines of a graph that define the product's factors %30 and %31; some cases also define the result %33
  const char* lines;
  const char* output;
  std::function<bool(int64_t m, int64_t n, int64_t k)> counts;
};

// The product of the factors %30 and %31.
constexpr const char* kProduct = R"(
  %32 = contract %30 %31 "mk,kn->mn" : f32[10,13])";

const Case kCases[] = {
    {"lower", R"(
  %40 = ge %2 %5 : b1[10,11]
  %30 = select %40 %0 %8 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k >= 3; }},
    {"upper_otherwise", R"(
  %40 = gt %2 %5 : b1[10,11]
  %30 = select %40 %8 %0 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k <= 3; }},
    {"right", R"(
  %30 = neg %0 : f32[10,11]
  %40 = lt %3 %6 : b1[11,13]
  %31 = select %40 %1 %9 : f32[11,13])",
     "32", [](int64_t, int64_t n, int64_t k) { return n - k < 3; }},
    {"factor_of_truth", R"(
  %40 = le %2 %5 : b1[10,11]
  %41 = cast %40 : f32[10,11]
  %30 = mul %0 %41 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k <= 3; }},
    {"band", R"(
  %40 = lt %2 %5 : b1[10,11]
  %41 = constant 0 : i64[10,11]
  %42 = ge %2 %41 : b1[10,11]
  %43 = logical_and %40 %42 : b1[10,11]
  %30 = select %43 %0 %8 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k >= 0 && m - k < 3; }},
    {"not_outside_of_a_band", R"(
  %40 = ge %2 %5 : b1[10,11]
  %41 = constant 0 : i64[10,11]
  %42 = lt %2 %41 : b1[10,11]
  %43 = logical_or %40 %42 : b1[10,11]
  %44 = logical_not %43 : b1[10,11]
  %30 = select %44 %0 %8 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k >= 0 && m - k < 3; }},
    {"diagonal", R"(
  %40 = ne %2 %5 : b1[10,11]
  %30 = select %40 %8 %0 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k == 3; }},
    {"both_factors", R"(
  %40 = ge %2 %5 : b1[10,11]
  %30 = select %40 %0 %8 : f32[10,11]
  %41 = ge %3 %6 : b1[11,13]
  %31 = select %41 %1 %9 : f32[11,13])",
     "32", [](int64_t m, int64_t n, int64_t k) { return m - k >= 3 && n - k >= 3; }},
    {"work_that_keeps_zeros", R"(
  %40 = ge %2 %5 : b1[10,11]
  %41 = select %40 %0 %8 : f32[10,11]
  %42 = tanh %41 : f32[10,11]
  %30 = max %42 %8 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k >= 3; }},
    {"function_of_never", R"(
  %40 = ge %2 %5 : b1[10,11]
  %41 = constant -inf : f32[10,11]
  %42 = select %40 %0 %41 : f32[10,11]
  %30 = exp %42 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t m, int64_t, int64_t k) { return m - k >= 3; }},
    {"work_that_does_not", R"(
  %40 = ge %2 %5 : b1[10,11]
  %41 = select %40 %0 %8 : f32[10,11]
  %30 = exp %41 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t, int64_t, int64_t) { return true; }},
    {"an_input_decides", R"(
  %40 = cast %0 : i64[10,11]
  %41 = ge %2 %40 : b1[10,11]
  %30 = select %41 %0 %8 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t, int64_t, int64_t) { return true; }},
    {"places_of_bytes", R"(
  %40 = constant 100 : i64[10,11]
  %41 = mul %20 %40 : i64[10,11]
  %42 = cast %41 : i8[10,11]
  %43 = constant 99 : i8[10,11]
  %44 = ge %42 %43 : b1[10,11]
  %30 = select %44 %0 %8 : f32[10,11]
  %31 = neg %1 : f32[11,13])",
     "32", [](int64_t, int64_t, int64_t) { return true; }},  // the coordinates wrap around as i8
    {"kept_result", R"(
  %30 = neg %0 : f32[10,11]
  %31 = neg %1 : f32[11,13]
  %32 = contract %30 %31 "mk,kn->mn" : f32[10,13]
  %40 = ge %4 %7 : b1[10,13]
  %33 = select %40 %32 %10 : f32[10,13])",
     "33", [](int64_t m, int64_t n, int64_t) { return m - n >= 3; }},
    {"result_that_is_used_twice", R"(
  %30 = neg %0 : f32[10,11]
  %31 = neg %1 : f32[11,13]
  %32 = contract %30 %31 "mk,kn->mn" : f32[10,13]
  %40 = ge %4 %7 : b1[10,13]
  %41 = select %40 %32 %10 : f32[10,13]
  %42 = gt %4 %7 : b1[10,13]
  %43 = select %42 %32 %10 : f32[10,13]
  %33 = add %41 %43 : f32[10,13])",
     "33", [](int64_t m, int64_t n, int64_t) { return m - n >= 3; }},
    {"result_on_both_sides", R"(
  %30 = neg %0 : f32[10,11]
  %31 = neg %1 : f32[11,13]
  %32 = contract %30 %31 "mk,kn->mn" : f32[10,13]
  %40 = ge %4 %7 : b1[10,13]
  %41 = abs %32 : f32[10,13]
  %33 = select %40 %32 %41 : f32[10,13])",
     "33", [](int64_t, int64_t, int64_t) { return true; }},
    {"result_times_truth", R"(
  %30 = neg %0 : f32[10,11]
  %31 = neg %1 : f32[11,13]
  %32 = contract %30 %31 "mk,kn->mn" : f32[10,13]
  %40 = ge %4 %7 : b1[10,13]
  %41 = cast %40 : f32[10,13]
  %33 = mul %41 %32 : f32[10,13])",
     "33", [](int64_t m, int64_t n, int64_t) { return m - n >= 3; }},
};

class MasksTest : public ::testing::TestWithParam<Case> {};

TEST_P(MasksTest, SayWhichProductsCount) {
  const Case& test = GetParam();
  const bool ends = std::string(test.output) == "33";
  const Graph graph = product(cat(test.lines, ends ? "" : kProduct), test.output);
  const auto domain = analyze(graph, test_machine());
  ASSERT_TRUE(domain.ok()) << domain.status();
  ASSERT_EQ(domain->cls, LoopClass::kContract);
  const Region region = counted_products(graph, *domain);
  int64_t all = 0;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t n = 0; n < kN; ++n)
      for (int64_t k = 0; k < kK; ++k) {
        bool inside = true;
        for (const Condition& condition : region) {
          int64_t value = condition.base;
          value += condition.strides[domain->m[0]] * m + condition.strides[domain->n[0]] * n;
          inside = inside && value + condition.strides[domain->reduced[0]] * k >= 0;
        }
        ASSERT_EQ(inside, test.counts(m, n, k)) << m << " " << n << " " << k;
        all += inside ? 1 : 0;
      }
  EXPECT_NEAR(share_of(region, *domain), static_cast<double>(all) / (kM * kN * kK), 1e-12);
  for (const Condition& condition : region) EXPECT_LT(least(condition, *domain), 0) << "a condition that always holds";
}

TEST(Masks, SharesOfManyLoopsAreNotCounted) {
  Domain domain;
  domain.atoms.resize(40, {2, false, ""});
  EXPECT_EQ(share_of({{-20, std::vector<int64_t>(40, 1)}}, domain), 1);
  domain.atoms.resize(3);
  EXPECT_DOUBLE_EQ(share_of({{-2, {1, 1, 1}}}, domain), 0.5);
}

INSTANTIATE_TEST_SUITE_P(Groups, MasksTest, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& test) { return test.param.name; });

}  // namespace
}  // namespace wl

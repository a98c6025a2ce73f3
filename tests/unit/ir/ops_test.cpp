// Conformance: tests every row of kOps.
#include "compiler/ir/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/ir/bound.h"
#include "compiler/ir/build.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

// Returns whether an op's value jumps, so that its derivatives do not bound the difference between two values. pow
// also jumps, but not at the points of this test.
bool is_jump(Op op) {
  return (info(op).slope == Slope::kJumps && op != Op::pow) || op == Op::select ||
         info(op).result == ResultType::kBool || is_logical(op);
}

// Returns a point inside the domain of every op: positive, away from poles and jumps.
double point(std::mt19937_64& random) {
  return 0.05 + static_cast<double>(random() % 1000) / 250;
}

TEST(Ops, RowsAreInEnumOrderAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < ops().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(ops()[i].op), i);
    EXPECT_TRUE(names.insert(ops()[i].name).second) << ops()[i].name;
    EXPECT_EQ(ops()[i].value != nullptr, ops()[i].cls == OpClass::kElementwise) << ops()[i].name;
    EXPECT_EQ(ops()[i].partials != nullptr, ops()[i].cls == OpClass::kElementwise) << ops()[i].name;
  }
}

TEST(Ops, LawsHold) {
  std::mt19937_64 random(3);
  for (const OpInfo& row : ops()) {
    for (int trial = 0; trial < 50 && is_commutative(row.op); ++trial) {
      const double x = std::floor(point(random)), y = std::floor(point(random));
      EXPECT_EQ(row.value(x, y, 0), row.value(y, x, 0)) << row.name;
      for (DType dtype : {DType::f32, DType::i32, DType::u8})
        if (is_combine(row.op)) {
          EXPECT_EQ(row.value(identity_of(row.op, dtype), x, 0), x) << row.name;
        }
    }
    const bool sums = row.cls == OpClass::kReduce || row.cls == OpClass::kContract;
    if (sums) {
      EXPECT_TRUE(is_combine(combine_of(row.op))) << row.name;
    }
  }
}

TEST(Ops, PartialsBoundFiniteDifferences) {
  std::mt19937_64 random(1);
  for (const OpInfo& row : ops()) {
    if (row.cls != OpClass::kElementwise || is_jump(row.op)) continue;
    for (int trial = 0; trial < 200; ++trial) {
      double at[3] = {point(random), point(random), point(random)};
      const double r = row.value(at[0], at[1], at[2]);
      ASSERT_TRUE(std::isfinite(r)) << row.name;
      double partial[3];
      row.partials(at[0], at[1], at[2], r, partial);
      for (int i = 0; i < row.arity; ++i) {
        const double centre = at[i], h = 1e-6 * centre;
        at[i] = centre + h;
        const double above = row.value(at[0], at[1], at[2]);
        at[i] = centre - h;
        const double below = row.value(at[0], at[1], at[2]);
        at[i] = centre;
        const double slope = std::fabs(above - below) / (2 * h);
        EXPECT_GE(partial[i] * 1.001 + 1e-6, slope) << row.name << " operand " << i << " at " << at[0] << " " << at[1];
        const bool one_sided = row.op == Op::max || row.op == Op::min || row.op == Op::sin || row.op == Op::cos;
        if (!one_sided) {
          EXPECT_LE(partial[i], slope * 1.1 + 1e-6) << row.name << " operand " << i << " at " << at[0] << " " << at[1];
        }
      }
    }
  }
}

TEST(Ops, ErrorsOfOperandsStayInsideThePropagatedBound) {
  std::mt19937_64 random(2);
  auto unit = [&] { return 2 * (static_cast<double>(random() % 100001) / 100000) - 1; };
  for (const OpInfo& row : ops()) {
    if (row.cls != OpClass::kElementwise) continue;
    if (is_logical(row.op) || is_bitwise(row.op)) continue;
    const DType to = row.result == ResultType::kBool ? DType::b1 : DType::f32;
    Elementwise apply(row.op, DType::f32, to);
    for (int trial = 0; trial < 2000; ++trial) {
      Estimate x[3];
      for (int i = 0; i < row.arity; ++i) {
        x[i].value = trial % 3 == 0 ? std::round(4 * unit()) / 2 : 4 * unit();
        x[i].worst = x[i].spread = trial % 2 == 0 ? 1e-6 : 0.05 * std::fabs(unit());
      }
      if (row.op == Op::select) x[0] = {static_cast<double>(random() % 2)};
      const Estimate result = apply(x);
      if (std::isinf(result.bound())) continue;
      for (int k = 0; k < 20; ++k) {
        double at[3];
        for (int i = 0; i < 3; ++i) at[i] = x[i].value + x[i].worst * unit();
        const double got = row.value(at[0], at[1], at[2]);
        if (std::isnan(got)) continue;  // skipped: the perturbed arguments are outside the op's domain
        // The op's bound is of first order and neglects products of two errors, so the error may exceed it by a few
        // percent.
        EXPECT_LE(std::fabs(got - result.value), result.bound() * 1.2 + 1e-9)
            << row.name << " at " << x[0].value << " " << x[1].value << " +- " << x[0].worst << " " << x[1].worst;
      }
    }
  }
}

TEST(Ops, EveryElementwiseRowBuildsPrintsParsesAndEvaluates) {
  for (const OpInfo& row : ops()) {
    if (row.cls != OpClass::kElementwise) continue;
    SCOPED_TRACE(row.name);
    Builder b;
    Node node{.op = row.op, .dtype = DType::f32};
    for (int i = 0; i < row.arity; ++i) {
      const bool condition = is_logical(row.op) || (row.op == Op::select && i == 0);
      const DType number = is_bitwise(row.op) ? DType::u32 : DType::f32;
      node.operands.push_back(b.input(cat("x", i), condition ? DType::b1 : number, {3, 5}));
    }
    b.output("y", b.add_node(node));
    auto graph = b.finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto again = parse(print(*graph));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *graph);
    auto check = make_check(*graph, 7);
    ASSERT_TRUE(check.ok()) << check.status();
    auto read = generated_inputs(*graph, 7);
    for (const Check::Sample& s : check->samples) {
      double x[3] = {};
      for (int i = 0; i < row.arity; ++i) x[i] = read(i, s.index);
      const double expected = row.value(x[0], x[1], x[2]);
      EXPECT_TRUE(s.expected == expected || (std::isnan(s.expected) && std::isnan(expected)));
      if (row.ulps > 0 && std::isfinite(expected)) {
        EXPECT_GE(s.bound, row.ulps * 0x1p-23 * std::fabs(expected));
      }
    }
  }
}

TEST(Ops, EveryElementwiseRowNamesAWrongDType) {
  for (const OpInfo& row : ops()) {
    if (row.cls != OpClass::kElementwise || row.arity < 2) continue;
    Builder b;
    NodeId x = b.input("x", DType::f32, {2}), y = b.input("y", DType::i32, {2});
    std::vector<NodeId> operands(static_cast<size_t>(row.arity), x);
    operands.back() = y;
    b.elementwise(row.op, operands);
    EXPECT_EQ(b.status().message().substr(0, row.name.size()), absl::string_view(row.name.data(), row.name.size()))
        << b.status();
    EXPECT_FALSE(b.status().ok()) << row.name;
  }
}

TEST(Ops, SpecialFunctionsOfTheTable) {
  EXPECT_TRUE(std::isnan(nan_max(NAN, 1)) && std::isnan(nan_max(1, NAN)) && std::isnan(nan_min(NAN, 1)));
  EXPECT_EQ(floor_mod(-7, 3), 2);
  EXPECT_EQ(floor_mod(7, -3), -2);
  EXPECT_EQ(sign_of(-0.0), 0);
  EXPECT_EQ(wrap(DType::i8, 200), -56);
  EXPECT_EQ(wrap(DType::u16, -1), 65535);
  EXPECT_EQ(wrap(DType::b1, 4), 1);
  EXPECT_EQ(to_integer(DType::i32, DType::f32, 3e9), 2147483647);
  EXPECT_EQ(to_integer(DType::i32, DType::i64, 3e9), 3e9 - 4294967296.0);
  EXPECT_EQ(round_to(DType::f16, 0.1), 0.0999755859375);
}

}  // namespace
}  // namespace wl

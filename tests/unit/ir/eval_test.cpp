#include "compiler/ir/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/ir/build.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "tests/unit/ir/outputs.h"

namespace wl {
namespace {

NodeId literal(Builder& b, const std::string& name, Shape shape, std::vector<double> values, DType dtype = DType::f32) {
  Fill fill;
  fill.literal = std::move(values);
  return b.input(name, dtype, std::move(shape), fill);
}

std::vector<Value> all_of(const Graph& graph) {
  return testing::values_of_outputs(graph, 1)[0];
}

std::vector<double> values_of(Builder& b, NodeId id) {
  b.output("y", id);
  auto graph = b.finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::vector<double> result;
  if (!graph.ok()) return result;
  for (const Value& v : all_of(*graph)) result.push_back(v.value);
  return result;
}

TEST(Eval, SoftmaxIsTheOneComputedByHand) {
  Builder b;
  NodeId x = literal(b, "x", {2, 2}, {0, std::log(3.0), 1, 1}, DType::f64);
  NodeId e = b.elementwise(Op::exp, {b.sub(x, b.reduce_keep(Op::reduce_max, x, {1}))});
  b.output("y", b.div(e, b.reduce_keep(Op::reduce_sum, e, {1})));
  auto values = all_of(*b.finish());
  const double expected[] = {0.25, 0.75, 0.5, 0.5};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(values[i].value, expected[i], 1e-15);
    EXPECT_GT(values[i].bound, 0);
    EXPECT_LT(values[i].bound, 1e-14);
  }
}

TEST(Eval, LayerNormHasMeanZeroAndVarianceOne) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {3, 64}, Fill{.mean = 5, .stddev = 2});
  NodeId n = b.constant(1.0 / 64, DType::f32, {});
  NodeId centred = b.sub(x, b.mul(b.reduce_keep(Op::reduce_sum, x, {1}), n));
  NodeId variance = b.mul(b.reduce_keep(Op::reduce_sum, b.mul(centred, centred), {1}), n);
  std::vector<double> y = values_of(b, b.div(centred, b.elementwise(Op::sqrt, {variance})));
  for (int row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 64; ++i) {
      sum += y[row * 64 + i];
      squares += y[row * 64 + i] * y[row * 64 + i];
    }
    EXPECT_NEAR(sum, 0, 1e-10);
    EXPECT_NEAR(squares, 64, 1e-9);
  }
}

TEST(Eval, ContractionsMatchTripleLoops) {
  struct Case {
    std::string einsum;
    Shape a, b;
  };
  const Case cases[] = {{"mk,kn->mn", {5, 70}, {70, 11}},
                        {"mk,nk->nm", {9, 13}, {6, 13}},
                        {"bhqd,bhkd->bhqk", {2, 3, 4, 8}, {2, 3, 5, 8}},
                        {"k,k->", {33}, {33}},
                        {"m,n->mn", {3}, {4}},
                        {"mj,kn->mn", {2, 3}, {4, 5}},
                        {"abk,kc->bac", {2, 3, 300}, {300, 9}}};
  for (const Case& c : cases) {
    Builder b;
    NodeId x = b.input("a", DType::f32, c.a), y = b.input("b", DType::f32, c.b);
    b.output("y", b.contract(x, y, c.einsum));
    Graph graph = *b.finish();
    auto got = all_of(graph);
    // Computes a contraction by definition: every assignment of the einsum's letters adds one product to an output
    // element.
    Einsum e = *parse_einsum(c.einsum);
    std::string letters = e.a;
    Shape extents = c.a;
    for (size_t i = 0; i < e.b.size(); ++i) {
      if (letters.find(e.b[i]) == std::string::npos) {
        letters += e.b[i];
        extents.push_back(c.b[i]);
      }
    }
    std::vector<double> expected(got.size(), 0), magnitude(got.size(), 0);
    auto read = generated_inputs(graph, 1);
    for (int64_t i = 0; i < elements(extents); ++i) {
      auto offset = [&](const std::string& list) {
        int64_t at = 0, rest = 0;
        for (char l : list) {
          size_t axis = letters.find(l);
          rest = i;
          for (size_t k = letters.size() - 1; k > axis; --k) rest /= extents[k];
          at = at * extents[axis] + rest % extents[axis];
        }
        return at;
      };
      double product = read(x, offset(e.a)) * read(y, offset(e.b));
      expected[offset(e.out)] += product;
      magnitude[offset(e.out)] += std::fabs(product);
    }
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].value, expected[i], 1e-12 * (1 + magnitude[i])) << c.einsum << " element " << i;
      EXPECT_GE(got[i].bound, 0x1p-24 * magnitude[i]) << c.einsum;
      EXPECT_LE(got[i].bound, 0x1p-16 * magnitude[i]) << c.einsum;
    }
  }
}

// A product of factors truncated to TF32 (without their last 13 bits) is within the bound of a product that allows
// TF32. The largest error is at least a twentieth of that bound, so the bound is not too loose. Most of these results
// exceed the bound of a product that does not allow TF32.
TEST(Eval, FactorsOfTf32AreWithinTheBoundThatAllowsThem) {
  constexpr int64_t kRows = 8, kDepth = 600;
  const auto bounds = [&](bool tf32, bool positive) {
    Builder b;
    NodeId x = b.input("a", DType::f32, {kRows, kDepth}), y = b.input("b", DType::f32, {kDepth, kRows});
    if (positive) x = b.elementwise(Op::abs, {x}), y = b.elementwise(Op::abs, {y});
    b.output("y", b.contract(x, y, "mk,kn->mn", {}, tf32));
    return *b.finish();
  };
  const auto cut = [](double v) {
    return static_cast<double>(std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(v)) & 0xffffe000u));
  };
  for (const bool positive : {false, true}) {
    const Graph allowed = bounds(true, positive), exact = bounds(false, positive);
    const auto wide = all_of(allowed), narrow = all_of(exact);
    const auto read = generated_inputs(allowed, 1);
    const auto factor = [&](int input, int64_t at) {
      return cut(positive ? std::fabs(read(input, at)) : read(input, at));
    };
    int beyond = 0;
    double largest = 0;
    for (int64_t m = 0; m < kRows; ++m)
      for (int64_t n = 0; n < kRows; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) sum += factor(0, m * kDepth + k) * factor(1, k * kRows + n);
        const auto& with = wide[m * kRows + n];
        const double error = std::fabs(sum - with.value);
        EXPECT_EQ(with.value, narrow[m * kRows + n].value);
        EXPECT_LE(error, with.bound);
        largest = std::max(largest, error / with.bound);
        beyond += error > narrow[m * kRows + n].bound ? 1 : 0;
      }
    EXPECT_GT(largest, 0.05) << "the bound is far above what such factors do";
    EXPECT_GT(beyond, kRows * kRows / 2) << "a product of f32 has other factors";
  }
}

TEST(Eval, ViewsMoveElements) {
  auto iota = [](Builder& b, Shape shape) {
    std::vector<double> values(static_cast<size_t>(elements(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return literal(b, "x", shape, values);
  };
  using Doubles = std::vector<double>;
  Builder b1, b2, b3, b4, b5, b6, b7;
  EXPECT_EQ(values_of(b1, b1.transpose(iota(b1, {2, 3}), {1, 0})), (Doubles{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of(b2, b2.broadcast(iota(b2, {2}), {2, 3}, {0})), (Doubles{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(values_of(b3, b3.slice(iota(b3, {2, 4}), {1, 3}, {1, -2}, {1, 2})), (Doubles{7, 5}));
  Node pad{.op = Op::pad, .operands = {iota(b4, {1, 2})}, .ints = {0, 1}, .ints2 = {1, 0}, .value = 9};
  EXPECT_EQ(values_of(b4, b4.add_node(pad)), (Doubles{9, 0, 1, 9, 9, 9}));
  NodeId x = iota(b5, {2, 2});
  EXPECT_EQ(values_of(b5, b5.add_node({.op = Op::concat, .operands = {x, b5.transpose(x, {1, 0})}, .ints = {1}})),
            (Doubles{0, 1, 0, 2, 2, 3, 1, 3}));
  Node window{.op = Op::window, .operands = {iota(b6, {6})}, .ints = {0}, .ints2 = {2, 2, 3}};
  EXPECT_EQ(values_of(b6, b6.add_node(window)), (Doubles{0, 3, 2, 5}));
  EXPECT_EQ(values_of(b7, b7.iota(DType::i64, {2, 2}, 0)), (Doubles{0, 0, 1, 1}));
}

TEST(Eval, TakeAlongReadsNegativeIndicesAndRefusesOthers) {
  Builder b;
  NodeId x = literal(b, "x", {2, 3}, {0, 1, 2, 3, 4, 5}), i = literal(b, "i", {2, 1}, {-1, 1}, DType::i64);
  EXPECT_EQ(values_of(b, b.take_along(x, i, 1)), (std::vector<double>{2, 4}));
  Builder bad;
  NodeId y = literal(bad, "x", {2}, {0, 1}), j = literal(bad, "i", {1}, {2}, DType::i64);
  bad.output("y", bad.take_along(y, j, 0));
  Graph graph = *bad.finish();
  auto values = evaluate(graph, generated_inputs(graph, 1), {{graph.outputs[0].node, {0}}});
  EXPECT_EQ(values.status().message(), "%2 = take_along: index 2 of element 0 is outside [-2,2)");
  EXPECT_EQ(values.status().code(), absl::StatusCode::kOutOfRange);
  // The inputs of a check are generated, so an index out of range is no error there: the value at the nearest legal
  // index is expected.
  const auto check = make_check(graph, 1);
  ASSERT_TRUE(check.ok()) << check.status();
  ASSERT_EQ(check->samples.size(), 1u);
  EXPECT_EQ(check->samples[0].expected, 1);
}

TEST(Eval, TakeAlongOfATakenIndexWorks) {
  Builder b;
  NodeId x = literal(b, "x", {3}, {10, 20, 30}), i = literal(b, "i", {3}, {2, 0, 1}, DType::i64);
  NodeId twice = b.take_along(i, i, 0);  // `twice` = i[i], the permutation i applied twice: 1 2 0
  EXPECT_EQ(values_of(b, b.take_along(x, twice, 0)), (std::vector<double>{20, 30, 10}));
}

TEST(Eval, IntegersWrapAndConvertAsTwosComplement) {
  Builder b1, b2, b3, b4;
  NodeId x = literal(b1, "x", {3}, {2147483647, -2147483648.0, 7}, DType::i32);
  EXPECT_EQ(values_of(b1, b1.mul(x, x)), (std::vector<double>{1, 0, 49}));
  NodeId f = literal(b2, "f", {4}, {-1.7, 1e10, std::nan(""), 200.5});
  EXPECT_EQ(values_of(b2, b2.cast(f, DType::i8)), (std::vector<double>{-1, 127, 0, 127}));
  NodeId w = literal(b3, "w", {2}, {300, -1}, DType::i32);
  EXPECT_EQ(values_of(b3, b3.cast(w, DType::u8)), (std::vector<double>{44, 255}));
  NodeId n = literal(b4, "n", {2}, {-7, 7}, DType::i32);
  EXPECT_EQ(values_of(b4, b4.div(n, b4.constant(2, DType::i32, {}))), (std::vector<double>{-3, 3}));
}

TEST(Eval, IntegersOfSixtyFourBitsAreExact) {
  // A random number generator whose multiplier and increment no double holds exactly.
  const auto graph = parse(R"(graph {
    %0 = constant 6364136223846793005 : u64[3]
    %1 = constant 1442695040888963407 : u64[3]
    %2 = iota axis=[0] : u64[3]
    %3 = mul %2 %0 : u64[3]
    %4 = add %3 %1 : u64[3]
    %5 = constant 1000003 : u64[3]
    %6 = mod %4 %5 : u64[3]
    %7 = reduce_max %4 axes=[0] : u64[]
    %8 = contract %4 %4 "a,a->" : u64[]
    %9 = constant 1442695040888963408 : u64[3]
    %10 = lt %4 %9 : b1[3]
    output "mod" %6
    output "max" %7
    output "dot" %8
    output "less" %10
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto simple = simplify(*graph);
  ASSERT_TRUE(simple.ok()) << simple.status();
  for (const Graph& one : {*graph, *simple}) {
    const auto values = testing::evaluate_outputs(one, generated_inputs(one, 1));
    ASSERT_TRUE(values.ok()) << values.status();
    uint64_t most = 0, dot = 0;
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t x = i * 6364136223846793005u + 1442695040888963407u;
      EXPECT_EQ((*values)[0][i].value, static_cast<double>(x % 1000003));
      EXPECT_EQ((*values)[0][i].bound, 0);
      EXPECT_EQ((*values)[3][i].value, x < 1442695040888963408u);
      most = std::max(most, x);
      dot += x * x;
    }
    EXPECT_EQ(static_cast<uint64_t>((*values)[1][0].whole), most);
    EXPECT_EQ(static_cast<uint64_t>((*values)[2][0].whole), dot);
  }
}

TEST(Eval, DivisionsOfIntegersNeverTrap) {
  const auto least = static_cast<double>(std::numeric_limits<int32_t>::min());
  const std::map<Op, std::vector<double>> expected = {
      {Op::div, {0, least, -3, -3}}, {Op::fmod, {0, 0, -1, 1}}, {Op::mod, {0, 0, 1, -1}}, {Op::pow, {1, 0, 49, 0}}};
  for (const auto& [op, results] : expected) {
    Builder b;
    const NodeId x = literal(b, "x", {4}, {7, least, -7, 7}, DType::i32);
    const NodeId y = literal(b, "y", {4}, {0, -1, 2, -2}, DType::i32);
    EXPECT_EQ(values_of(b, b.elementwise(op, {x, y})), results) << name_of(op);
  }
}

TEST(Eval, BoundsAreZeroWhereNothingRounds) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {4, 5});
  b.output("y",
           b.elementwise(Op::neg, {b.transpose(b.elementwise(Op::max, {x, b.constant(0, DType::f32, {})}), {1, 0})}));
  for (const Value& v : all_of(*b.finish())) EXPECT_EQ(v.bound, 0);
}

TEST(Eval, AJumpInsideTheIntervalIsCovered) {
  Builder b;
  NodeId x = literal(b, "x", {2}, {1.0, 2.5});
  NodeId third = b.mul(x, b.constant(1.0 / 3, DType::f32, {}));
  // The exact results are 1 and 2.5. Rounding errors may put the first one below 1, where floor() is 0; no error moves
  // the second one across an integer.
  NodeId near = b.mul(third, b.constant(3, DType::f32, {}));
  b.output("y", b.elementwise(Op::floor, {near}));
  auto values = all_of(*b.finish());
  EXPECT_NEAR(values[0].bound, 1, 1e-6);
  EXPECT_EQ(values[1].bound, 0);
  EXPECT_EQ(values[1].value, 2);
}

TEST(Eval, MaskedSoftmaxKeepsInfinitiesExact) {
  Builder b;
  NodeId x = literal(b, "x", {1, 3}, {1, 2, 3});
  NodeId m = literal(b, "m", {1, 3}, {0, -INFINITY, 0});
  NodeId s = b.add(b.mul(x, b.constant(0.1, DType::f32, {})), m);
  NodeId e = b.elementwise(Op::exp, {b.sub(s, b.reduce_keep(Op::reduce_max, s, {1}))});
  b.output("y", b.div(e, b.reduce_keep(Op::reduce_sum, e, {1})));
  auto values = all_of(*b.finish());
  EXPECT_EQ(values[1].value, 0);
  EXPECT_LT(values[1].bound, 1e-30);
  EXPECT_LT(values[0].bound, 1e-5);
}

TEST(Eval, OverflowIsInfinityAndItsEdgeIsUntestable) {
  Builder b;
  NodeId x = literal(b, "x", {4}, {95, 88, 88.722839, 89.5});
  b.output("y", b.elementwise(Op::exp, {x}));
  auto values = all_of(*b.finish());
  EXPECT_EQ(values[0].value, INFINITY);
  EXPECT_EQ(values[0].bound, 0);
  EXPECT_TRUE(std::isfinite(values[1].value) && std::isfinite(values[1].bound));
  EXPECT_EQ(values[2].bound, INFINITY);
  // any value is accepted, since a rewrite may avoid the overflow by taking out a factor
  EXPECT_EQ(values[3].bound, INFINITY);
}

TEST(Eval, EmptyTensorsAndScalarsWork) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {3, 0});
  EXPECT_EQ(values_of(b, b.reduce(Op::reduce_sum, x, {1})), (std::vector<double>{0, 0, 0}));
  Builder s;
  EXPECT_EQ(values_of(s, s.add(s.constant(2, DType::f32, {}), s.constant(3, DType::f32, {}))), std::vector<double>{5});
  Builder c;
  NodeId p = c.input("p", DType::f32, {2, 0}), q = c.input("q", DType::f32, {0, 2});
  EXPECT_EQ(values_of(c, c.contract(p, q, "mk,kn->mn")), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Check, SamplesAreDeterministicAndCoverCorners) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {100, 1000});
  b.output("y", b.elementwise(Op::exp, {x}));
  b.output("s", b.reduce(Op::reduce_sum, x, {1}));
  Graph graph = *b.finish();
  auto check = make_check(graph, 5);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(*check, *make_check(graph, 5));
  EXPECT_NE(*check, *make_check(graph, 6));
  Work given_up([] { return absl::CancelledError("nobody waits"); });
  EXPECT_TRUE(absl::IsCancelled(make_check(graph, 5, &given_up).status()));
  std::set<int64_t> rows, elements;
  size_t second = 0;
  for (const Check::Sample& s : check->samples) {
    EXPECT_GT(s.bound, 0);
    if (s.buffer == 1) {
      rows.insert(s.index / 1000);
      elements.insert(s.index);
    } else {
      ASSERT_EQ(s.buffer, 2);
      ++second;
    }
  }
  EXPECT_LE(rows.size(), 12u);
  EXPECT_GE(elements.size(), 150u);
  EXPECT_LE(elements.size(), 260u);
  EXPECT_EQ(second, 100u);
  for (int64_t corner : {0, 999, 99000, 99999}) EXPECT_TRUE(elements.count(corner)) << corner;
}

TEST(Check, BuffersAreInputsThenOutputs) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {2}), y = b.input("y", DType::i64, {3}, Fill{.low = 0, .high = 9});
  b.output("z", b.cast(y, DType::f32));
  b.output("w", x);
  auto buffers = buffers_of(*b.finish());
  ASSERT_EQ(buffers.size(), 4u);
  EXPECT_EQ(buffers[1].name, "y");
  EXPECT_EQ(buffers[1].stream, 1u);
  EXPECT_EQ(buffers[1].fill.high, 9);
  EXPECT_EQ(buffers[2].name, "z");
  EXPECT_TRUE(buffers[2].output);
  EXPECT_EQ(buffers[2].shape, Shape{3});
}

}  // namespace
}  // namespace wl

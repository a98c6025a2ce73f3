#include "compiler/ir/ranges.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

Range range_in(const Builder& b, NodeId id) {
  return range_of([&b](NodeId n) -> const Node& { return b.node(n); }, id);
}

void expect_range(const Range& range, double low, double high) {
  EXPECT_EQ(range.low, low);
  EXPECT_EQ(range.high, high);
}

TEST(Ranges, FollowIntegersThroughArithmeticAndViews) {
  Builder b;
  const NodeId x = b.input("x", DType::i64, {4, 8}), byte = b.input("b", DType::u8, {4, 8});
  const NodeId place = b.iota(DType::i64, {4, 8}, 1);
  expect_range(range_in(b, place), 0, 7);
  expect_range(range_in(b, byte), 0, 255);
  expect_range(range_in(b, b.sub(b.cast(byte, DType::i64), b.constant_like(97, x))), -97, 158);
  const NodeId seven = b.constant_like(7, x), none = b.constant_like(0, x);
  const NodeId clamped = b.elementwise(Op::max, {b.elementwise(Op::min, {x, seven}), none});
  expect_range(range_in(b, clamped), 0, 7);
  expect_range(range_in(b, b.elementwise(Op::mod, {x, seven})), 0, 6);
  const NodeId chosen = b.elementwise(Op::select, {b.elementwise(Op::lt, {x, none}), place, seven});
  expect_range(range_in(b, b.reduce(Op::reduce_min, chosen, {1})), 0, 7);
  expect_range(range_in(b, b.take_along(place, x, 1)), 0, 7);
}

TEST(Ranges, KnowNothingOfWhatMayWrapOrIsNaN) {
  Builder b;
  const NodeId x = b.input("x", DType::i8, {3}), y = b.input("y", DType::f32, {3});
  expect_range(range_in(b, b.add(x, b.constant_like(1, x))), -128, 127);
  const NodeId floor = b.elementwise(Op::max, {b.elementwise(Op::floor, {y}), b.constant_like(5, y)});
  const NodeId capped = b.elementwise(Op::min, {floor, b.constant_like(9, y)});
  // The cast turns NaN into 0, so the range includes 0, although max() makes every other value at least 5.
  expect_range(range_in(b, b.cast(capped, DType::i64)), 0, 9);
}

TEST(Ranges, SayWhichFloatsAreNotNegative) {
  Builder b;
  const NodeId x = b.input("x", DType::f32, {3, 4}), eps = b.constant_like(1e-5, x);
  const NodeId square = b.mul(x, x), sum = b.add(square, eps);
  const auto is_known = [&](NodeId id) { return range_in(b, id).low == 0; };
  for (const NodeId id : {square, sum, b.elementwise(Op::abs, {x}), b.elementwise(Op::exp, {x}), b.div(square, eps),
                          b.reduce(Op::reduce_sum, sum, {1}), b.cast(b.input("b", DType::u8, {3}), DType::f32)})
    EXPECT_TRUE(is_known(id));
  for (const NodeId id : {x, b.add(x, eps), b.mul(x, eps), b.sub(square, eps), b.div(eps, square), b.div(x, eps),
                          b.elementwise(Op::rsqrt, {square}), b.reduce(Op::reduce_sum, x, {1})})
    EXPECT_FALSE(is_known(id));
  const NodeId whole = b.input("i", DType::i8, {3});
  expect_range(range_in(b, b.elementwise(Op::abs, {whole})), -128, 127);  // -128 has no absolute value in eight bits
}

TEST(Ranges, SayWhichIndicesCannotBeOutside) {
  Builder b;
  const NodeLookup lookup = [&b](NodeId n) -> const Node& { return b.node(n); };
  const NodeId table = b.input("t", DType::f32, {5}), data = b.input("i", DType::i64, {8});
  const auto inside = [&](NodeId index) { return takes_inside(lookup, b.node(b.take_along(table, index, 0))); };
  EXPECT_FALSE(inside(data));
  EXPECT_FALSE(inside(b.iota(DType::i64, {6}, 0)));
  EXPECT_TRUE(inside(b.iota(DType::i64, {5}, 0)));
  EXPECT_TRUE(inside(b.constant(-5, DType::i64, {2})));
  EXPECT_FALSE(inside(b.constant(-6, DType::i64, {2})));
}

// Returns the graph's text after draw_integers() has given a fill to the integer inputs that have none.
std::string filled(const std::string& text) {
  Graph graph = parse(cat("graph {", text, "}")).value();
  draw_integers(graph);
  return print(graph);
}

TEST(Ranges, InputsThatAreIndicesAreDrawnInside) {
  const std::string letters = filled(R"(
    %0 = input "t" : f32[26,4]
    %1 = input "letters" : u8[9]
    %2 = cast %1 : i64[9]
    %3 = constant 97 : i64[9]
    %4 = sub %2 %3 : i64[9]
    %5 = broadcast %4 dims=[0] : i64[9,4]
    %6 = take_along %0 %5 axis=[0] : f32[9,4]
    output "y" %6
  )");
  EXPECT_NE(letters.find("input \"letters\" : u8[9] uniform(97,123)"), std::string::npos) << letters;
  // The index is 7 * row + column, computed from two inputs. Both get ranges with which the index stays inside the
  // table.
  const std::string pairs = filled(R"(
    %0 = input "t" : f32[35]
    %1 = input "row" : i64[9]
    %2 = input "column" : i32[9]
    %3 = constant 7 : i64[9]
    %4 = mul %1 %3 : i64[9]
    %5 = cast %2 : i64[9]
    %6 = add %4 %5 : i64[9]
    %7 = take_along %0 %6 axis=[0] : f32[9]
    output "y" %7
  )");
  EXPECT_NE(pairs.find("\"row\" : i64[9] uniform(0,3)"), std::string::npos) << pairs;
  EXPECT_NE(pairs.find("\"column\" : i32[9] uniform(0,18)"), std::string::npos) << pairs;
  // A fill that the graph states is not replaced.
  const std::string given = filled(R"(
    %0 = input "t" : f32[26]
    %1 = input "i" : i64[9] uniform(3,5)
    %2 = take_along %0 %1 axis=[0] : f32[9]
    output "y" %2
  )");
  EXPECT_NE(given.find("uniform(3,5)"), std::string::npos) << given;
}

TEST(Ranges, IntegersThatOnlyIntegersAreMadeOfAreDrawnFromAll) {
  const std::string text = filled(R"(
    %0 = input "x" : i32[9]
    %1 = input "mask" : i64[9]
    %2 = input "compared" : i16[9]
    %3 = input "index" : i64[9]
    %4 = input "given" : i32[9] uniform(3,5)
    %5 = input "table" : i32[7]
    %6 = cast %1 : f32[9]
    %7 = take_along %5 %3 axis=[0] : i32[9]
    %8 = add %0 %7 : i32[9]
    %9 = add %8 %4 : i32[9]
    %10 = eq %2 %2 : b1[9]
    %11 = select %10 %6 %6 : f32[9]
    output "y" %9
    output "z" %11
  )");
  for (const std::string wanted :
       {"\"x\" : i32[9] uniform(-2147483648,2147483648)", "\"mask\" : i64[9] uniform(0,2)",
        "\"compared\" : i16[9] uniform(-32768,32768)", "\"index\" : i64[9] uniform(0,7)",
        "\"given\" : i32[9] uniform(3,5)", "\"table\" : i32[7] uniform(-2147483648,2147483648)"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " is not in " << text;
}

}  // namespace
}  // namespace wl

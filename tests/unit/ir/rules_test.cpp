#include "compiler/ir/rules/rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/text.h"

namespace wl {
namespace {

struct Case {
  std::string rule;
  std::function<NodeId(Builder&, NodeId)> build;  // builds the output from x : f32[4,6]
  std::string expected;                           // text of the output node and of all nodes that it needs except x
};

NodeId pad(Builder& b, NodeId x, std::vector<int64_t> low, std::vector<int64_t> high) {
  return b.add_node({.op = Op::pad, .operands = {x}, .ints = std::move(low), .ints2 = std::move(high)});
}
NodeId splat(Builder& b, double v) {
  return b.constant(v, DType::f32, {});
}
NodeId power(Builder& b, NodeId x, double v) {
  return b.elementwise(Op::pow, {x, splat(b, v)});
}

const Case kCases[] = {
    {"commute", [](Builder& b, NodeId x) { return b.mul(splat(b, 3), x); },
     "%1 = constant 3 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n"},
    {"add-zero", [](Builder& b, NodeId x) { return b.add(splat(b, 0), x); }, ""},
    {"add-zero", [](Builder& b, NodeId x) { return b.sub(x, splat(b, 0)); }, ""},
    {"mul-one", [](Builder& b, NodeId x) { return b.div(x, splat(b, 1)); }, ""},
    {"integer-mul-zero",
     [](Builder& b, NodeId) { return b.mul(b.iota(DType::i32, {3}, 0), b.constant(0, DType::i32, {})); },
     "%1 = constant 0 : i32[3]\n"},
    {"double-neg", [](Builder& b, NodeId x) { return b.elementwise(Op::neg, {b.elementwise(Op::neg, {x})}); }, ""},
    {"cast-same", [](Builder& b, NodeId x) { return b.cast(x, DType::f32); }, ""},
    {"fold-constants", [](Builder& b, NodeId) { return b.add(splat(b, 2), splat(b, 0.25)); },
     "%1 = constant 2.25 : f32[]\n"},
    {"view-constant", [](Builder& b, NodeId) { return b.broadcast(splat(b, 2), {3}, {}); },
     "%1 = constant 2 : f32[3]\n"},
    {"identity-view",
     [](Builder& b, NodeId x) {
       return b.reshape(x, {4, 6});
     },
     ""},
    {"identity-view",
     [](Builder& b, NodeId x) {
       return b.transpose(x, {0, 1});
     },
     ""},
    {"identity-view",
     [](Builder& b, NodeId x) {
       return b.slice(x, {0, 0}, {1, 1}, {4, 6});
     },
     ""},
    {"identity-view",
     [](Builder& b, NodeId x) {
       return b.broadcast(x, {4, 6}, {0, 1});
     },
     ""},
    {"identity-view",
     [](Builder& b, NodeId x) {
       return pad(b, x, {0, 0}, {0, 0});
     },
     ""},
    {"reshape-reshape",
     [](Builder& b, NodeId x) {
       return b.reshape(b.reshape(x, {24}), {3, 8});
     },
     "%1 = reshape %0 : f32[3,8]\n"},
    {"transpose-transpose",
     [](Builder& b, NodeId x) {
       return b.transpose(b.transpose(b.broadcast(x, {4, 6, 2}, {0, 1}), {1, 2, 0}), {1, 2, 0});
     },
     "%1 = broadcast %0 dims=[0,1] : f32[4,6,2]\n%2 = transpose %1 perm=[2,0,1] : f32[2,4,6]\n"},
    {"broadcast-broadcast",
     [](Builder& b, NodeId x) {
       return b.broadcast(b.broadcast(x, {2, 4, 6}, {1, 2}), {2, 3, 4, 6}, {0, 2, 3});
     },
     "%1 = broadcast %0 dims=[2,3] : f32[2,3,4,6]\n"},
    {"slice-slice",
     [](Builder& b, NodeId x) {
       return b.slice(b.slice(x, {0, 5}, {1, -2}, {4, 3}), {1, 2}, {2, -1}, {2, 3});
     },
     "%1 = slice %0 starts=[1,1] steps=[2,2] : f32[2,3]\n"},
    {"transpose-units",
     [](Builder& b, NodeId x) {
       return b.transpose(b.reduce(Op::reduce_sum, b.broadcast(x, {4, 6, 1, 2}, {0, 1}), {3}), {2, 0, 1});
     },
     "%1 = broadcast %0 dims=[0,1] : f32[4,6,1,2]\n%2 = reduce_sum %1 axes=[3] : f32[4,6,1]\n%3 = reshape %2 : "
     "f32[4,6]\n%4 = reshape %3 : f32[1,4,6]\n"},
    {"elementwise-units",
     [](Builder& b, NodeId x) {
       return b.add(b.reshape(x, {4, 1, 6}), splat(b, 2));
     },
     "%1 = reshape %0 : f32[4,1,6]\n%2 = reshape %1 : f32[4,6]\n%3 = constant 2 : f32[4,6]\n%4 = add %2 %3 : "
     "f32[4,6]\n%5 = reshape %4 : f32[4,1,6]\n"},
    {"reduce-units",
     [](Builder& b, NodeId x) {
       return b.reduce(Op::reduce_max, b.reshape(x, {4, 1, 6}), {1, 2});
     },
     "%1 = reshape %0 : f32[4,1,6]\n%2 = reshape %1 : f32[4,6]\n%3 = reduce_max %2 axes=[1] : f32[4]\n%4 = reshape "
     "%3 : f32[4]\n"},
    {"broadcast-units",
     [](Builder& b, NodeId x) {
       return b.broadcast(x, {4, 1, 6, 2}, {0, 2});
     },
     "%1 = broadcast %0 dims=[0,1] : f32[4,6,2]\n%2 = reshape %1 : f32[4,1,6,2]\n"},
    {"slice-units",
     [](Builder& b, NodeId x) {
       return b.slice(b.reshape(x, {4, 1, 6}), {1, 0, 0}, {1, 1, 1}, {2, 1, 6});
     },
     "%1 = reshape %0 : f32[4,1,6]\n%2 = reshape %1 : f32[4,6]\n%3 = slice %2 starts=[1,0] steps=[1,1] : "
     "f32[2,6]\n%4 = reshape %3 : f32[2,1,6]\n"},
    {"concat-units",
     [](Builder& b, NodeId x) {
       const NodeId y = b.reshape(x, {4, 1, 6});
       return b.add_node({.op = Op::concat, .operands = {y, y}, .ints = {2}});
     },
     "%1 = reshape %0 : f32[4,1,6]\n%2 = reshape %1 : f32[4,6]\n%3 = concat %2 %2 axis=[1] : f32[4,12]\n%4 = "
     "reshape %3 : f32[4,1,12]\n"},
    {"concat-window",
     [](Builder& b, NodeId x) {
       std::vector<NodeId> taps;
       for (int64_t row : {0, 2})
         for (int64_t column : {1, 2, 3})
           taps.push_back(b.reshape(b.slice(x, {row, column}, {1, 2}, {2, 2}), {2, 1, 2}));
       return b.add_node({.op = Op::concat, .operands = taps, .ints = {1}});
     },
     "%1 = slice %0 starts=[0,1] steps=[1,1] : f32[4,5]\n%2 = window %1 axes=[0,1] params=[2,1,2,3,2,1] : "
     "f32[2,2,2,3]\n%3 = transpose %2 perm=[0,2,3,1] : f32[2,2,3,2]\n%4 = reshape %3 : f32[2,6,2]\n"},
    {"concat-elementwise",
     [](Builder& b, NodeId x) {
       const NodeId high = b.slice(x, {0, 2}, {1, 1}, {4, 4}), low = b.slice(x, {0, 0}, {1, 1}, {4, 2});
       return b.add_node({.op = Op::concat, .operands = {b.elementwise(Op::neg, {high}), low}, .ints = {1}});
     },
     "%1 = slice %0 starts=[0,2] steps=[1,1] : f32[4,4]\n%2 = slice %0 starts=[0,0] steps=[1,1] : f32[4,2]\n%3 = pad "
     "%2 low=[0,4] high=[0,0] value=0 : f32[4,6]\n%4 = pad %1 low=[0,0] high=[0,2] value=0 : f32[4,6]\n%5 = neg %4 : "
     "f32[4,6]\n%6 = iota axis=[1] : i32[4,6]\n%7 = constant 4 : i32[4,6]\n%8 = lt %6 %7 : b1[4,6]\n%9 = select %8 %5 "
     "%3 : f32[4,6]\n"},
    {"contract-units",
     [](Builder& b, NodeId x) {
       return b.contract(b.reshape(x, {1, 4, 6}), x, "bmk,nk->bmn");
     },
     "%1 = reshape %0 : f32[1,4,6]\n%2 = reshape %1 : f32[4,6]\n%3 = contract %2 %0 \"mk,nk->mn\" : f32[4,4]\n%4 = "
     "reshape %3 : f32[1,4,4]\n"},
    {"hoist-view",
     [](Builder& b, NodeId x) {
       return b.elementwise(Op::exp, {b.transpose(x, {1, 0})});
     },
     "%1 = exp %0 : f32[4,6]\n%2 = transpose %1 perm=[1,0] : f32[6,4]\n"},
    {"hoist-view", [](Builder& b, NodeId x) { return b.mul(b.reshape(x, {24}), splat(b, 3)); },
     "%1 = constant 3 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n%3 = reshape %2 : f32[24]\n"},
    {"reduce-transpose",
     [](Builder& b, NodeId x) {
       return b.reduce(Op::reduce_sum, b.transpose(b.reshape(x, {2, 2, 6}), {2, 0, 1}), {1});
     },
     "%1 = reshape %0 : f32[2,2,6]\n%2 = reduce_sum %1 axes=[0] : f32[2,6]\n%3 = transpose %2 perm=[1,0] : "
     "f32[6,2]\n"},
    {"contract-transpose",
     [](Builder& b, NodeId x) {
       return b.contract(b.transpose(x, {1, 0}), b.transpose(x, {1, 0}), "mk,nk->mn");
     },
     "%1 = contract %0 %0 \"km,kn->mn\" : f32[6,6]\n"},
    {"contract-order", [](Builder& b, NodeId x) { return b.contract(b.elementwise(Op::exp, {x}), x, "km,kn->mn"); },
     "%1 = exp %0 : f32[4,6]\n%2 = transpose %1 perm=[1,0] : f32[6,4]\n%3 = contract %2 %0 \"mk,kn->mn\" : "
     "f32[6,6]\n"},
    {"contract-letters", [](Builder& b, NodeId x) { return b.contract(x, x, "ij,lj->il"); },
     "%1 = contract %0 %0 \"mk,nk->mn\" : f32[4,4]\n"},
    {"reshape-broadcast",
     [](Builder& b, NodeId x) {
       return b.reshape(b.broadcast(x, {4, 6, 3}, {0, 1}), {24, 1, 3});
     },
     "%1 = reshape %0 : f32[24]\n%2 = broadcast %1 dims=[0] : f32[24,3]\n%3 = reshape %2 : f32[24,1,3]\n"},
    {"broadcast-reshape",
     [](Builder& b, NodeId x) {
       return b.broadcast(b.reshape(x, {4, 1, 6}), {4, 1, 6, 2}, {0, 1, 2});
     },
     "%1 = broadcast %0 dims=[0,2] : f32[4,1,6,2]\n"},
    {"pow-small", [](Builder& b, NodeId x) { return power(b, x, 2); }, "%1 = mul %0 %0 : f32[4,6]\n"},
    {"pow-small", [](Builder& b, NodeId x) { return power(b, b.mul(x, x), 0.5); },
     "%1 = mul %0 %0 : f32[4,6]\n%2 = sqrt %1 : f32[4,6]\n"},
    {"pow-small", [](Builder& b, NodeId x) { return power(b, x, 0.5); },
     "%1 = sqrt %0 : f32[4,6]\n%2 = constant -inf : f32[4,6]\n%3 = eq %0 %2 : b1[4,6]\n"
     "%4 = constant inf : f32[4,6]\n%5 = select %3 %4 %1 : f32[4,6]\n"},
    {"pow-small", [](Builder& b, NodeId x) { return power(b, x, -1); }, "%1 = rcp %0 : f32[4,6]\n"},
    {"neg-one", [](Builder& b, NodeId x) { return b.mul(x, splat(b, -1)); }, "%1 = neg %0 : f32[4,6]\n"},
    {"neg-one", [](Builder& b, NodeId x) { return b.sub(splat(b, 0), x); }, "%1 = neg %0 : f32[4,6]\n"},
    {"neg-add", [](Builder& b, NodeId x) { return b.add(b.elementwise(Op::neg, {x}), x); },
     "%1 = sub %0 %0 : f32[4,6]\n"},
    {"neg-add", [](Builder& b, NodeId x) { return b.sub(x, b.elementwise(Op::neg, {x})); },
     "%1 = add %0 %0 : f32[4,6]\n"},
    {"sub-constant", [](Builder& b, NodeId x) { return b.sub(x, splat(b, 3)); },
     "%1 = constant -3 : f32[4,6]\n%2 = add %0 %1 : f32[4,6]\n"},
    {"div-power", [](Builder& b, NodeId x) { return b.div(x, splat(b, -8)); },
     "%1 = constant -0.125 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n"},
    {"div-constant", [](Builder& b, NodeId x) { return b.div(x, splat(b, 10)); },
     "%1 = constant 0.1 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n"},
    {"div-sqrt", [](Builder& b, NodeId x) { return b.div(x, b.elementwise(Op::sqrt, {x})); },
     "%1 = rsqrt %0 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n"},
    {"div-repeated",
     [](Builder& b, NodeId x) {
       const NodeId norm = b.elementwise(Op::sqrt, {b.reduce(Op::reduce_sum, x, {1})});
       return b.div(x, b.broadcast(norm, {4, 6}, {0}));
     },
     "%1 = reduce_sum %0 axes=[1] : f32[4]\n%2 = sqrt %1 : f32[4]\n%3 = rcp %2 : f32[4]\n%4 = broadcast %3 dims=[0] : "
     "f32[4,6]\n%5 = mul %0 %4 : f32[4,6]\n"},
    {"sigmoid",
     [](Builder& b, NodeId x) {
       return b.elementwise(Op::rcp, {b.add(b.elementwise(Op::exp, {b.elementwise(Op::neg, {x})}), splat(b, 1))});
     },
     "%1 = sigmoid %0 : f32[4,6]\n"},
    {"sigmoid", [](Builder& b, NodeId x) { return b.div(x, b.add(splat(b, 1), b.elementwise(Op::exp, {x}))); },
     "%1 = neg %0 : f32[4,6]\n%2 = sigmoid %1 : f32[4,6]\n%3 = mul %0 %2 : f32[4,6]\n"},
    {"scale-product", [](Builder& b, NodeId x) { return b.mul(b.mul(x, splat(b, 2)), x); },
     "%1 = constant 2 : f32[4,6]\n%2 = mul %0 %0 : f32[4,6]\n%3 = mul %2 %1 : f32[4,6]\n"},
    {"scale-product", [](Builder& b, NodeId x) { return b.mul(b.mul(x, b.elementwise(Op::exp, {x})), splat(b, 0.5)); },
     "%1 = exp %0 : f32[4,6]\n%2 = constant 0.5 : f32[4,6]\n%3 = mul %1 %2 : f32[4,6]\n%4 = mul %0 %3 : f32[4,6]\n"},
    {"scale-scale", [](Builder& b, NodeId x) { return b.mul(b.mul(x, splat(b, 0.5)), splat(b, 3)); },
     "%1 = constant 1.5 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n"},
    {"scale-contract", [](Builder& b, NodeId x) { return b.contract(b.mul(x, splat(b, 3)), x, "mk,nk->mn"); },
     "%1 = contract %0 %0 \"mk,nk->mn\" : f32[4,4]\n%2 = constant 3 : f32[4,4]\n%3 = mul %1 %2 : f32[4,4]\n"},
    {"byte-products",
     [](Builder& b, NodeId x) {
       const NodeId a = b.input("a", DType::u8, {5, 4}), w = b.input("w", DType::i8, {4, 6});
       const NodeId numbers = b.mul(b.sub(b.cast(a, DType::f32), splat(b, 7)), splat(b, 0.5));
       const NodeId scales = b.reduce(Op::reduce_max, x, {0});
       return b.contract(numbers, b.mul(b.cast(w, DType::f32), b.broadcast(scales, {4, 6}, {1})), "mk,kn->mn");
     },
     "%1 = input \"a\" : u8[5,4] uniform(0,2)\n%2 = input \"w\" : i8[4,6] uniform(0,2)\n%3 = reduce_max %0 axes=[0] : "
     "f32[6]\n%4 = contract %1 %2 \"mk,kn->mn\" : i32[5,6]\n%5 = cast %2 : i32[4,6]\n%6 = reduce_sum %5 axes=[0] : "
     "i32[6]\n%7 = constant 7 : i32[6]\n%8 = mul %6 %7 : i32[6]\n%9 = broadcast %8 dims=[1] : i32[5,6]\n%10 = sub %4 "
     "%9 : i32[5,6]\n%11 = cast %10 : f32[5,6]\n%12 = constant 0.5 : f32[6]\n%13 = mul %3 %12 : f32[6]\n%14 = "
     "broadcast %13 dims=[1] : f32[5,6]\n%15 = mul %11 %14 : f32[5,6]\n"},
    {"requantise",
     [](Builder& b, NodeId) {
       const NodeId q = b.input("q", DType::u8, {5, 4});
       NodeId x = b.mul(b.add(b.cast(q, DType::f32), splat(b, -7)), splat(b, 0.3));
       x = b.add(b.elementwise(Op::round, {b.div(x, splat(b, 0.3))}), splat(b, 7));
       x = b.elementwise(Op::min, {b.elementwise(Op::max, {x, splat(b, 0)}), splat(b, 255)});
       return b.cast(x, DType::u8);
     },
     "%1 = input \"q\" : u8[5,4] uniform(0,2)\n"},
    {"one-over", [](Builder& b, NodeId x) { return b.div(splat(b, 1), x); }, "%1 = rcp %0 : f32[4,6]\n"},
    {"rcp-sqrt", [](Builder& b, NodeId x) { return b.elementwise(Op::rcp, {b.elementwise(Op::sqrt, {x})}); },
     "%1 = rsqrt %0 : f32[4,6]\n"},
    {"hoist-broadcast",
     [](Builder& b, NodeId x) {
       return b.mul(b.broadcast(x, {4, 6, 9}, {0, 1}), splat(b, 3));
     },
     "%1 = constant 3 : f32[4,6]\n%2 = mul %0 %1 : f32[4,6]\n%3 = broadcast %2 dims=[0,1] : f32[4,6,9]\n"},
    {"take-elementwise",
     [](Builder& b, NodeId x) {
       return b.take_along(b.elementwise(Op::exp, {x}), b.input("i", DType::i64, {4, 1}, Fill{.low = 0, .high = 6}), 1);
     },
     "%1 = input \"i\" : i64[4,1] uniform(0,6)\n%2 = take_along %0 %1 axis=[1] : f32[4,1]\n%3 = exp %2 : f32[4,1]\n"},
    {"take-broadcast",
     [](Builder& b, NodeId x) {
       return b.take_along(b.broadcast(x, {4, 9, 6}, {0, 2}), b.iota(DType::i64, {4, 2, 6}, 1), 1);
     },
     "%1 = broadcast %0 dims=[0,2] : f32[4,2,6]\n"},
    {"take-broadcast",
     [](Builder& b, NodeId x) {
       return b.take_along(b.reshape(x, {4, 1, 6}), b.constant(-1, DType::i64, {4, 2, 6}), 1);
     },
     "%1 = reshape %0 : f32[4,1,6]\n%2 = reshape %1 : f32[4,6]\n%3 = broadcast %2 dims=[0,2] : f32[4,2,6]\n"},
};

TEST(Rules, EachAloneRewritesItsExample) {
  std::set<std::string, std::less<>> all, covered;
  for (const Rule& rule : rules()) EXPECT_TRUE(all.emplace(rule.name).second) << rule.name;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.rule);
    covered.insert(c.rule);
    Builder b;
    NodeId x = b.input("x", DType::f32, {4, 6});
    b.output("y", c.build(b, x));
    auto graph = b.finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto others = all;
    ASSERT_EQ(others.erase(c.rule), 1u);
    std::set<std::string, std::less<>> fired;
    auto simple = simplify(*graph, others, &fired);
    ASSERT_TRUE(simple.ok()) << simple.status();
    EXPECT_EQ(fired, (std::set<std::string, std::less<>>{c.rule}));
    std::string got;
    for (NodeId id = 1; id < static_cast<NodeId>(simple->nodes.size()); ++id) got += print_node(*simple, id) + "\n";
    EXPECT_EQ(got, c.expected);
    // If all rules are disabled, the graph does not change.
    auto untouched = simplify(*graph, all);
    ASSERT_TRUE(untouched.ok());
    EXPECT_EQ(*untouched, *graph);
  }
  EXPECT_EQ(covered, all) << "a rule without an example";
}

// No rule removes a lookup whose index may be out of range, because the kernel has to report such an index.
TEST(Rules, KeepWhatTellsOfAnIndexOutside) {
  for (const int64_t extent : {1, 7}) {
    Builder b;
    const NodeId table = b.broadcast(b.input("x", DType::f32, {}), {extent}, {});
    b.output("y", b.take_along(table, b.input("i", DType::i64, {3}), 0));
    const auto simple = simplify(*b.finish());
    ASSERT_TRUE(simple.ok()) << simple.status();
    EXPECT_TRUE(std::any_of(simple->nodes.begin(), simple->nodes.end(), [](const Node& node) {
      return node.op == Op::take_along;
    })) << print(*simple);
  }
}

// In softmax cross-entropy, the full log-softmax is not stored after simplification.
TEST(Rules, GatherOfLogSoftmaxReadsRowsOnce) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {128, 1000});
  NodeId label = b.input("label", DType::i64, {128, 1}, Fill{.low = 0, .high = 1000});
  NodeId s = b.sub(x, b.reduce_keep(Op::reduce_max, x, {1}));
  NodeId log_sum = b.elementwise(Op::log, {b.reduce_keep(Op::reduce_sum, b.elementwise(Op::exp, {s}), {1})});
  b.output("loss", b.elementwise(Op::neg, {b.take_along(b.sub(s, log_sum), label, 1)}));
  auto simple = simplify(*b.finish());
  ASSERT_TRUE(simple.ok()) << simple.status();
  int wide = 0;
  for (const Node& node : simple->nodes) {
    if (class_of(node.op) == OpClass::kElementwise && elements(node.shape) == 128000) ++wide;
    if (node.op == Op::take_along) {
      EXPECT_EQ(simple->nodes[node.operands[0]].op, Op::input);
    }
  }
  EXPECT_EQ(wide, 2) << print(*simple);  // two elementwise ops over all elements remain: x - max and exp
}

TEST(Rules, EqualNodesMergeAndDeadOnesGo) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {2});
  Graph graph = [&] {
    b.output("y", x);
    return *b.finish();
  }();
  for (int i = 0; i < 3; ++i)
    graph.nodes.push_back({.op = Op::exp, .dtype = DType::f32, .shape = {2}, .operands = {0}});
  graph.nodes.push_back({.op = Op::add, .dtype = DType::f32, .shape = {2}, .operands = {1, 2}});
  graph.outputs[0].node = 4;
  auto simple = simplify(graph);
  ASSERT_TRUE(simple.ok());
  EXPECT_EQ(simple->nodes.size(), 3u);
}

// Elementwise work on the operands of a concat is moved behind the concat only if the operands are in memory anyway.
TEST(Rules, WorkThatItsProducerCouldDoStaysBeforeAConcat) {
  const auto joins = [](const std::function<std::vector<NodeId>(Builder&, NodeId, NodeId)>& operands) {
    Builder b;
    const NodeId x = b.input("x", DType::f32, {4, 6}), product = b.contract(x, x, "mk,nk->mn");
    b.output("y", b.add_node({.op = Op::concat, .operands = operands(b, x, product), .ints = {1}}));
    const Graph simple = *simplify(*b.finish());
    return std::any_of(simple.nodes.begin(), simple.nodes.end(), [](const Node& n) { return n.op == Op::concat; });
  };
  const auto neg = [](Builder& b, NodeId x) { return b.elementwise(Op::neg, {x}); };
  const auto part = [](Builder& b, NodeId x, int64_t from) { return b.slice(x, {0, from}, {1, 1}, {4, 2}); };
  using Operands = std::vector<NodeId>;
  EXPECT_TRUE(joins([&](Builder& b, NodeId x, NodeId product) { return Operands{neg(b, product), x}; }));
  EXPECT_TRUE(joins([&](Builder& b, NodeId x, NodeId product) {
    return Operands{neg(b, b.reduce_keep(Op::reduce_sum, product, {1})), x};
  }));
  EXPECT_FALSE(joins([&](Builder& b, NodeId, NodeId product) { return Operands{neg(b, product), product}; }));
  EXPECT_FALSE(joins([&](Builder& b, NodeId, NodeId product) {
    return Operands{neg(b, part(b, product, 2)), part(b, product, 0)};
  }));
  // The exp stays before the concat, because it takes longer than storing its result and reading it back.
  EXPECT_TRUE(joins([&](Builder& b, NodeId x, NodeId) { return Operands{b.elementwise(Op::exp, {x}), x}; }));
}

// 5 / 10 is exactly halfway between integers, but 5 * 0.1f is larger, so it would round to another integer.
TEST(Rules, QuotientsThatAreRoundedToIntegersStayQuotients) {
  const auto simple_of = [](bool rounds) {
    Builder b;
    const NodeId x = b.input("x", DType::f32, {4, 6}, {}), scale = b.input("s", DType::f32, {}, {});
    const NodeId usual = b.elementwise(Op::max, {scale, splat(b, 1e-3)});
    NodeId y = b.div(b.div(x, b.broadcast(usual, {4, 6}, {})), splat(b, 10));
    if (rounds) y = b.elementwise(Op::round, {b.elementwise(Op::max, {y, b.constant(0, DType::f32, {4, 6})})});
    b.output("y", y);
    return print(*simplify(*b.finish()));
  };
  EXPECT_NE(simple_of(true).find("div"), std::string::npos) << simple_of(true);
  EXPECT_EQ(simple_of(true).find("mul"), std::string::npos) << simple_of(true);
  EXPECT_EQ(simple_of(false).find("div"), std::string::npos) << simple_of(false);
}

}  // namespace
}  // namespace wl

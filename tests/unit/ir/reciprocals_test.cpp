#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

NodeId number(Builder& b, double v) {
  return b.constant(v, DType::f32, {});
}

// If y is denormal, x * (1 / y) may be infinite although x / y is finite, so the quotient is not rewritten.
TEST(Reciprocals, QuotientsByWhatMayBeDenormalStayQuotients) {
  const auto stays = [](const std::function<NodeId(Builder&, NodeId)>& divisor) {
    Builder b;
    const NodeId x = b.input("x", DType::f32, {6, 6}, {});
    b.output("y", b.div(x, b.broadcast(divisor(b, x), {6, 6}, {0})));
    return print(*simplify(*b.finish())).find("= div ") != std::string::npos;
  };
  const auto sum = [](Builder& b, NodeId x) { return b.reduce(Op::reduce_sum, x, {1}); };
  const auto powers = [](Builder& b, NodeId x, NodeId most, int64_t row) {
    return b.elementwise(Op::exp, {b.sub(x, b.broadcast(most, {6, 6}, {row}))});
  };
  EXPECT_TRUE(stays([](Builder& b, NodeId) { return b.input("s", DType::f32, {6}, {}); }));
  EXPECT_TRUE(stays(sum));
  EXPECT_TRUE(stays([&](Builder& b, NodeId x) { return sum(b, b.elementwise(Op::abs, {x})); }));
  EXPECT_TRUE(stays([&](Builder& b, NodeId x) { return b.add(sum(b, x), number(b, 1)); }));
  // not a softmax: each column's maximum is subtracted, but the sum is along rows
  EXPECT_TRUE(stays([&](Builder& b, NodeId x) { return sum(b, powers(b, x, b.reduce(Op::reduce_max, x, {0}), 0)); }));
  EXPECT_FALSE(
      stays([&](Builder& b, NodeId x) { return b.add(sum(b, b.elementwise(Op::abs, {x})), number(b, 1e-9)); }));
  EXPECT_FALSE(stays([&](Builder& b, NodeId x) { return b.elementwise(Op::max, {sum(b, x), number(b, 1e-12)}); }));
  EXPECT_FALSE(stays([&](Builder& b, NodeId x) { return sum(b, powers(b, x, b.reduce(Op::reduce_max, x, {1}), 0)); }));
  EXPECT_FALSE(stays([&](Builder& b, NodeId x) {  // a softmax whose rows may be fully masked
    const NodeId most = b.reduce(Op::reduce_max, x, {1}), empty = b.elementwise(Op::lt, {most, number(b, -1e30)});
    const NodeId safe = b.elementwise(Op::select, {empty, number(b, 0), most});
    return b.elementwise(Op::select, {empty, number(b, 1), sum(b, powers(b, x, safe, 0))});
  }));
  EXPECT_FALSE(stays([](Builder& b, NodeId) { return b.cast(b.input("n", DType::i32, {6}, {}), DType::f32); }));
  EXPECT_FALSE(stays([](Builder& b, NodeId) { return b.cast(b.input("h", DType::f16, {6}, {}), DType::f32); }));
}

}  // namespace
}  // namespace wl

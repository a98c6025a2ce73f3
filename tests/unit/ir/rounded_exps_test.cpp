// Which exponentials may be computed less exactly because their results are rounded, and how much the oracle's bounds
// grow.
#include "compiler/ir/rounded_exps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/build.h"
#include "compiler/ir/eval.h"

namespace wl {
namespace {

// Returns a graph that computes exp(x) and returns what `then` makes of the result.
template <class F>
Graph exp_and(const F& then, DType dtype = DType::f32) {
  Builder b;
  const NodeId x = b.input("x", dtype, {4, 8}, Fill{.mean = -4, .stddev = 3});
  b.output("y", then(b, b.elementwise(Op::exp, {x})));
  return b.finish().value();
}

NodeId rounded(Builder& b, NodeId value) {
  return b.cast(value, DType::bf16);
}

TEST(RoundedExps, AreSeenThroughCastsAlone) {
  EXPECT_TRUE(rounds_all_exps(exp_and([](Builder& b, NodeId e) { return rounded(b, e); })));
  EXPECT_TRUE(rounds_all_exps(exp_and([](Builder& b, NodeId e) {
    return rounded(b, b.div(e, b.reduce_keep(Op::reduce_sum, e, {1})));  // a softmax whose results are rounded
  })));
  EXPECT_TRUE(rounds_all_exps(exp_and([](Builder&, NodeId e) { return e; }, DType::bf16)));
  // The exp is rounded to a narrow float and then converted back to f32.
  EXPECT_TRUE(rounds_all_exps(exp_and([](Builder& b, NodeId e) { return b.cast(rounded(b, e), DType::f32); })));
}

TEST(RoundedExps, AreNotWhatIsStoredOrSubtracted) {
  EXPECT_FALSE(rounds_all_exps(exp_and([](Builder&, NodeId e) { return e; })));
  EXPECT_FALSE(rounds_all_exps(exp_and([](Builder&, NodeId e) { return e; }, DType::f64)));
  // 1 - exp(x) may be far smaller than the error of exp(x).
  EXPECT_FALSE(rounds_all_exps(exp_and([](Builder& b, NodeId e) {
    return rounded(b, b.sub(b.constant(1, DType::f32, {4, 8}), e));
  })));
  EXPECT_FALSE(rounds_all_exps(exp_and([](Builder& b, NodeId e) { return rounded(b, b.elementwise(Op::log, {e})); })));
  EXPECT_FALSE(rounds_all_exps(exp_and([](Builder& b, NodeId e) {
    b.output("z", b.reduce_keep(Op::reduce_sum, e, {1}));  // this output is an f32 sum, which is not rounded
    return rounded(b, e);
  })));
  EXPECT_FALSE(rounds_all_exps(
      exp_and([](Builder& b, NodeId e) { return rounded(b, b.elementwise(Op::neg, {e})); }, DType::f64)));
  Builder b;
  b.output("y", b.input("x", DType::bf16, {4}));
  EXPECT_FALSE(rounds_all_exps(b.finish().value())) << "there is none";
}

// Each exp of a graph is judged by itself. In this graph the result of one exp is rounded, and that of the other one is
// an output.
TEST(RoundedExps, AreToldOneByOne) {
  const Graph graph = exp_and([](Builder& b, NodeId e) {
    b.output("z", b.elementwise(Op::exp, {b.elementwise(Op::neg, {b.constant(1, DType::f32, {4})})}));
    return rounded(b, e);
  });
  int exps = 0, loose = 0;
  const std::vector<bool> found = rounded_exps(graph);
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    exps += graph.nodes[id].op == Op::exp ? 1 : 0;
    loose += found[id] ? 1 : 0;
  }
  EXPECT_EQ(exps, 2);
  EXPECT_EQ(loose, 1);
}

TEST(RoundedExps, HaveAnErrorThatGrowsWithTheArgument) {
  const double unit = std::ldexp(1, -24);
  EXPECT_NEAR(error_of_rounded_exp(0, 1), 4 * unit, unit / 100);
  EXPECT_NEAR(error_of_rounded_exp(-20, 1), 34 * unit, unit / 100);
  EXPECT_EQ(error_of_rounded_exp(-INFINITY, 0), 0);
  EXPECT_EQ(error_of_rounded_exp(1e30, INFINITY), 0);
  // The error of exp computed as exp2 in f32 stays within error_of_rounded_exp().
  for (const float x : {-0.3F, -1.7F, -9.9F, -33.1F, -80.3F, 5.5F, 60.7F}) {
    const double exact = std::exp(static_cast<double>(x)), is = std::exp2(static_cast<double>(x * 1.44269504F));
    EXPECT_LE(std::fabs(is - exact), error_of_rounded_exp(x, exact)) << x;
  }
}

// Of two graphs with the same exp, one rounds the exp's result and one does not: only the first has the larger bound.
TEST(RoundedExps, AreAllowedByTheOracle) {
  const Graph wide = exp_and([](Builder&, NodeId e) { return e; });
  const Graph narrow = exp_and([](Builder& b, NodeId e) { return b.cast(rounded(b, e), DType::f32); });
  const auto bounds = [](const Graph& graph, NodeId node) {
    return evaluate(graph, generated_inputs(graph, 1), {{node, {0, 5, 17}}}).value()[0];
  };
  const auto exp_of = [](const Graph& graph) {
    for (size_t id = 0; id < graph.nodes.size(); ++id)
      if (graph.nodes[id].op == Op::exp) return static_cast<NodeId>(id);
    return -1;
  };
  const std::vector<Value> a = bounds(wide, exp_of(wide)), b = bounds(narrow, exp_of(narrow));
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].value, b[i].value);
    EXPECT_GT(b[i].bound, 1.2 * a[i].bound);
    EXPECT_LT(b[i].bound, 8 * a[i].bound);
  }
}

}  // namespace
}  // namespace wl

// If exporters write one computation in different forms, all forms become the same group text after simplify().
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "compiler/domain/group_order.h"
#include "compiler/ir/build.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

struct Forms {
  std::string name;
  std::vector<std::function<NodeId(Builder&, NodeId)>> ways;  // each builds the same output from x : f32[4,6]
};

NodeId splat(Builder& b, double v) {
  return b.constant(v, DType::f32, {});
}
NodeId unary(Builder& b, Op op, NodeId x) {
  return b.elementwise(op, {x});
}
NodeId mean(Builder& b, NodeId x) {
  return b.mul(b.reduce(Op::reduce_sum, x, {1}), splat(b, 1.0 / 6));
}
NodeId wide(Builder& b, NodeId x) {
  return b.broadcast_to(b.reshape(x, {4, 1}), {4, 6});
}
NodeId tanh_of_cubic(Builder& b, NodeId x, NodeId cube) {
  const NodeId inner = b.add(x, b.mul(splat(b, 0.044715), cube));
  return unary(b, Op::tanh, b.mul(inner, splat(b, 0.7978845608)));
}

const Forms kForms[] = {
    {"silu",
     {[](Builder& b, NodeId x) { return b.mul(x, unary(b, Op::sigmoid, x)); },
      [](Builder& b, NodeId x) { return b.mul(unary(b, Op::sigmoid, x), x); },
      [](Builder& b, NodeId x) { return b.div(x, b.add(splat(b, 1), unary(b, Op::exp, unary(b, Op::neg, x)))); },
      [](Builder& b, NodeId x) {
        const NodeId exp = unary(b, Op::exp, b.mul(x, splat(b, -1)));
        return b.mul(x, b.div(splat(b, 1), b.add(exp, splat(b, 1))));
      }}},
    {"gelu by erf",
     {[](Builder& b, NodeId x) {
        const NodeId erf = unary(b, Op::erf, b.div(x, splat(b, std::sqrt(2))));
        return b.mul(b.mul(x, b.add(erf, splat(b, 1))), splat(b, 0.5));
      },
      [](Builder& b, NodeId x) {
        const NodeId erf = unary(b, Op::erf, b.mul(x, splat(b, std::sqrt(0.5))));
        return b.mul(b.mul(splat(b, 0.5), x), b.add(splat(b, 1), erf));
      },
      [](Builder& b, NodeId x) {
        const NodeId erf = unary(b, Op::erf, b.div(x, splat(b, std::sqrt(2))));
        return b.mul(x, b.div(b.add(erf, splat(b, 1)), splat(b, 2)));
      }}},
    {"gelu by tanh",
     {[](Builder& b, NodeId x) {
        const NodeId tanh = tanh_of_cubic(b, x, b.elementwise(Op::pow, {x, splat(b, 3)}));
        return b.mul(b.mul(splat(b, 0.5), x), b.add(splat(b, 1), tanh));
      },
      [](Builder& b, NodeId x) {
        const NodeId tanh = tanh_of_cubic(b, x, b.mul(x, b.mul(x, x)));
        return b.mul(b.mul(x, b.add(tanh, splat(b, 1))), splat(b, 0.5));
      }}},
    {"rms norm",
     {[](Builder& b, NodeId x) {
        const NodeId root = unary(b, Op::rsqrt, b.add(mean(b, b.mul(x, x)), splat(b, 1e-6)));
        return b.mul(x, wide(b, root));
      },
      [](Builder& b, NodeId x) {
        const NodeId square = b.elementwise(Op::pow, {x, splat(b, 2)});
        const NodeId kept = b.reshape(b.reduce(Op::reduce_sum, square, {1}), {4, 1});
        const NodeId root = unary(b, Op::sqrt, b.add(splat(b, 1e-6), b.div(kept, splat(b, 6))));
        return b.div(x, b.broadcast_to(root, {4, 6}));
      },
      [](Builder& b, NodeId x) {
        const NodeId root = unary(b, Op::sqrt, b.add(mean(b, b.mul(x, x)), splat(b, 1e-6)));
        return b.mul(wide(b, unary(b, Op::rcp, root)), x);
      }}},
    {"softmax",
     {[](Builder& b, NodeId x) {
        const NodeId exps = unary(b, Op::exp, b.sub(x, b.reduce_keep(Op::reduce_max, x, {1})));
        return b.div(exps, b.reduce_keep(Op::reduce_sum, exps, {1}));
      },
      [](Builder& b, NodeId x) {
        const NodeId most = b.reshape(b.reduce(Op::reduce_max, x, {1}), {4, 1});
        const NodeId exps = unary(b, Op::exp, b.sub(x, b.broadcast_to(most, {4, 6})));
        const NodeId sum = b.reshape(b.reduce(Op::reduce_sum, exps, {1}), {4, 1});
        return b.mul(exps, b.broadcast_to(b.div(splat(b, 1), sum), {4, 6}));
      }}},
    {"scaled scores",
     {[](Builder& b, NodeId x) { return b.div(b.contract(x, x, "mk,nk->mn"), splat(b, 8)); },
      [](Builder& b, NodeId x) { return b.contract(b.mul(x, splat(b, 0.125)), x, "ab,cb->ac"); },
      [](Builder& b, NodeId x) {
        return b.contract(b.mul(splat(b, 0.5), x), b.transpose(b.mul(x, splat(b, 0.25)), {1, 0}), "mk,kn->mn");
      }}},
    {"heads",
     {[](Builder& b, NodeId x) {
        return b.reduce(Op::reduce_max, b.reshape(x, {4, 2, 3}), {2});
      },
      [](Builder& b, NodeId x) {
        const NodeId heads = b.transpose(b.reshape(x, {1, 4, 2, 3}), {0, 2, 1, 3});
        return b.reshape(b.transpose(b.reduce(Op::reduce_max, heads, {3}), {0, 2, 1}), {4, 2});
      }}},
};

TEST(Forms, WaysToWriteTheSameBecomeOne) {
  for (const Forms& forms : kForms) {
    std::vector<std::string> texts;
    for (const auto& way : forms.ways) {
      Builder b;
      const NodeId x = b.input("x", DType::f32, {4, 6});
      b.output("y", way(b, x));
      const auto graph = b.finish();
      ASSERT_TRUE(graph.ok()) << forms.name << ": " << graph.status();
      const auto simple = simplify(*graph);
      ASSERT_TRUE(simple.ok()) << forms.name << ": " << simple.status();
      Group group;
      for (NodeId id = 0; id < static_cast<NodeId>(simple->nodes.size()); ++id)
        (simple->nodes[id].op == Op::input ? group.reads : group.ops).push_back(id);
      group.stores = {simple->outputs[0].node};
      texts.push_back(print(extract(*simple, in_order(*simple, group))));
      EXPECT_EQ(texts.back(), texts.front()) << forms.name << ", way " << texts.size() - 1;
    }
  }
}

}  // namespace
}  // namespace wl

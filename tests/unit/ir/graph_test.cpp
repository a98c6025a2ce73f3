#include "compiler/ir/graph.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

TEST(Builder, InternsEqualNodesAndSplatsScalars) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {2, 3});
  EXPECT_EQ(b.elementwise(Op::exp, {x}), b.elementwise(Op::exp, {x}));
  EXPECT_NE(b.constant(0.0, DType::f32, {}), b.constant(-0.0, DType::f32, {}));
  EXPECT_EQ(b.constant(NAN, DType::f32, {}), b.constant(NAN, DType::f32, {}));
  NodeId y = b.mul(x, b.constant(0.1, DType::f32, {}));
  EXPECT_EQ(b.node(y).shape, (Shape{2, 3}));
  EXPECT_EQ(b.node(b.node(y).operands[1]).value, static_cast<double>(0.1f));
}

TEST(Builder, BroadcastToFollowsNumPy) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {3, 1});
  NodeId y = b.broadcast_to(x, {2, 3, 4});
  EXPECT_EQ(b.node(y).shape, (Shape{2, 3, 4}));
  EXPECT_EQ(b.node(y).ints, std::vector<int64_t>{1});
  EXPECT_EQ(b.broadcast_to(x, {3, 1}), x);
  ASSERT_TRUE(b.status().ok());
  b.broadcast_to(x, {4, 4});
  EXPECT_EQ(b.status().message(),
            "broadcast: shape [3,1] does not stretch to [4,4]: extent 3 of axis 0 is neither 1 nor 4");
}

TEST(Builder, KeepsTheFirstErrorAndGoesOn) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {2}), y = b.input("y", DType::f32, {3});
  NodeId bad = b.add(x, y);
  b.reduce(Op::reduce_sum, b.transpose(bad, {0, 1, 2}), {7});
  b.output("z", bad);
  EXPECT_EQ(b.finish().status().message(),
            "add: operand 1 has shape [3] and operand 0 [2]; shapes must be equal (use broadcast)");
}

TEST(Builder, FinishDropsUnusedNodesButNoInput) {
  Builder b;
  NodeId x = b.input("x", DType::f32, {2});
  b.input("unused", DType::f32, {2});
  b.elementwise(Op::exp, {x});
  b.output("y", b.elementwise(Op::neg, {x}));
  Graph graph = *b.finish();
  EXPECT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.inputs(), (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(prune(graph, true).nodes.size(), 2u);
}

struct Misuse {
  std::function<void(Graph&)> harm;
  std::string message;
};

TEST(Graph, SumsOfNarrowFloatsMayBeWide) {
  const auto product = [](const char* operands, const char* result) {
    return parse(cat("graph {\n  %0 = input \"x\" : ", operands,
                     "[2,3] normal(0,1)\n  %1 = contract %0 %0 \"mk,nk->mn\" : ", result,
                     "[2,2]\n  output \"y\" %1\n}\n"));
  };
  for (const char* narrow : {"bf16", "f16"}) {
    for (const char* result : {narrow, "f32"}) {
      const auto graph = product(narrow, result);
      ASSERT_TRUE(graph.ok()) << graph.status();
      EXPECT_EQ(print(parse(print(*graph)).value()), print(*graph));
    }
    EXPECT_FALSE(product("f32", narrow).ok());
    EXPECT_FALSE(product(narrow, "f64").ok());
  }
  EXPECT_FALSE(product("f64", "f32").ok());
  EXPECT_FALSE(product("i8", "f32").ok());
}

// Returns a valid graph: %0 = x : f32[2,3]; %1 = exp %0; %2 = reduce_sum %1 over axis 1; %3 = contract %0 %0.
Graph healthy() {
  Builder b;
  NodeId x = b.input("x", DType::f32, {2, 3});
  b.output("y", b.reduce(Op::reduce_sum, b.elementwise(Op::exp, {x}), {1}));
  b.output("z", b.contract(x, x, "ab,cb->ac"));
  return *b.finish();
}

TEST(Verify, MessagesNameTheNode) {
  ASSERT_TRUE(verify(healthy()).ok());
  const Misuse cases[] = {
      {[](Graph& g) { g.nodes[1].operands = {2}; },
       "%1 = exp: exp: uses %2, which is not an earlier node (a graph must not contain a cycle)"},
      {[](Graph& g) { g.nodes[1].operands = {-1}; },
       "%1 = exp: exp: uses %-1, which is not an earlier node (a graph must not contain a cycle)"},
      {[](Graph& g) {
         g.nodes[1].operands = {0, 0};
       },
       "%1 = exp: exp: expected 1 operands, found 2"},
      {[](Graph& g) {
         g.nodes[1].shape = {3, 2};
       },
       "%1 = exp: expected type f32[2,3], found f32[3,2]"},
      {[](Graph& g) { g.nodes[1].ints = {1}; }, "%1 = exp: exp: the op takes no integer list, found [1]"},
      {[](Graph& g) { g.nodes[1].text = "t"; }, "%1 = exp: has text \"t\" but the op takes none"},
      {[](Graph& g) { g.nodes[1].op = static_cast<Op>(200); }, "%1: op number 200 is not in kOps"},
      {[](Graph& g) { g.nodes[2].ints = {2}; }, "%2 = reduce_sum: reduce_sum: axes 2 is outside [0,2)"},
      {[](Graph& g) {
         g.nodes[2].ints = {1, 1};
       },
       "%2 = reduce_sum: reduce_sum: axes [1,1] must be strictly increasing"},
      {[](Graph& g) { g.nodes[2].ints = {}; },
       "%2 = reduce_sum: reduce_sum: axes is empty; a reduction needs at least one"},
      {[](Graph& g) { g.nodes[3].text = "ab,bc->ac"; },
       "%3 = contract: contract: einsum \"ab,bc->ac\": letter b is 3 in operand 0 and 2 in operand 1"},
      {[](Graph& g) { g.nodes[3].text = "ab,cb->ad"; },
       "%3 = contract: contract: einsum \"ab,cb->ad\": output letter d is in no operand"},
      {[](Graph& g) { g.nodes[3].text = "aa,cb->a"; },
       "%3 = contract: contract: einsum \"aa,cb->a\": letter a occurs twice in one list; diagonals are not a "
       "contraction"},
      {[](Graph& g) { g.nodes[0].fill.stddev = -1; },
       "%0 = input \"x\": input: fill normal(0,-1) must be finite with a standard deviation >= 0"},
      {[](Graph& g) { g.nodes[0].text = ""; }, "%0 = input \"\": input: an input needs a name"},
      {[](Graph& g) { g.outputs.clear(); }, "the graph has no output; expected at least one"},
      {[](Graph& g) { g.outputs[1].name = "y"; },
       "output \"y\": both %2 and %3 have this name; output names must be unique"},
      {[](Graph& g) { g.outputs[1].node = 9; }, "output \"z\": %9 does not exist"},
  };
  for (const Misuse& misuse : cases) {
    Graph graph = healthy();
    misuse.harm(graph);
    EXPECT_EQ(verify(graph).message(), misuse.message);
  }
}

TEST(Infer, RefusesIllegalViewsAndTypes) {
  const std::pair<std::string, std::string> cases[] = {
      {"reshape %0 : f32[5]", "reshape: shape [5] has 5 elements, the operand's [2,3] has 6"},
      {"transpose %0 perm=[0,0] : f32[2,2]", "transpose: perm [0,0] is not a permutation"},
      {"transpose %0 perm=[0] : f32[2]", "transpose: expected 2 numbers in perm, found 1"},
      {"broadcast %0 dims=[1,2] : f32[4,2,4]",
       "broadcast: operand axis 1 has extent 3, output axis 2 has 4; extents must be equal (reshape away extents of "
       "1)"},
      {"broadcast %0 dims=[1,0] : f32[3,2]", "broadcast: dims [1,0] must be strictly increasing"},
      {"slice %0 starts=[0,2] steps=[1,1] : f32[2,2]",
       "slice: axis 1: start 2, step 1, extent 2 leaves the operand's extent 3"},
      {"slice %0 starts=[0,0] steps=[1,0] : f32[2,1]", "slice: step of axis 1 is 0"},
      {"pad %0 low=[-1,0] high=[0,0] value=0 : f32[1,3]", "pad: axis 0: padding must not be negative (use slice)"},
      {"window %0 axes=[1] params=[4,1,1] : f32[2,1,4]",
       "window: axis 1: a window of 4 taps with dilation 1 is wider than the extent 3"},
      {"take_along %0 %0 axis=[1] : f32[2,3]", "take_along: operand 1 (the index) must be an integer type, found f32"},
      {"concat axis=[0] : f32[2,3]", "concat: expected at least 1 operands, found 0"},
      {"logical_not %0 : f32[2,3]", "logical_not: operands must be b1, found f32"},
      {"select %0 %0 %0 : f32[2,3]", "select: operand 0 must be b1, found f32"},
      {"iota axis=[0] : b1[2]", "iota: dtype must be a number type"},
  };
  for (const auto& [node, message] : cases) {
    auto graph = parse("graph {\n%0 = input \"x\" : f32[2,3]\n%1 = " + node + "\noutput \"y\" %1\n}");
    EXPECT_EQ(graph.status().message(), "line 3: " + message);
  }
  auto integers = parse("graph {\n%0 = input \"x\" : i32[2]\n%1 = exp %0 : i32[2]\noutput \"y\" %1\n}");
  EXPECT_EQ(integers.status().message(), "line 3: exp: operand must be a float type, found i32; cast it");
}

}  // namespace
}  // namespace wl

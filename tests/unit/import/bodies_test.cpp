// Functions, branches, and loops of known length: the importer replaces such a node by its body.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/import/import.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "tests/unit/import/case_values.h"
#include "tests/unit/ir/outputs.h"

namespace wl::testing {
namespace {

using ::testing::HasSubstr;

// Returns the model's graph, renamed so that it can be the body of a node.
onnx::GraphProto graph_of(onnx::ModelProto model) {
  model.mutable_graph()->set_name("body");
  return model.graph();
}

void add_body(onnx::NodeProto& node, const std::string& name, onnx::GraphProto body) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  *attribute->mutable_g() = std::move(body);
}

absl::StatusOr<std::vector<double>> values_of(const onnx::ModelProto& model, std::vector<double> x) {
  WL_ASSIGN_OR_RETURN(const Imported imported, import_onnx(model.SerializeAsString()));
  const Graph& graph = imported.graph;
  const InputReader reader = [&](NodeId id, int64_t i) {
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    return node.fill.literal.empty() ? x[static_cast<size_t>(i)] : node.fill.literal[static_cast<size_t>(i)];
  };
  WL_ASSIGN_OR_RETURN(const OutputValues values, evaluate_outputs(graph, reader));
  std::vector<double> result;
  for (const Value& value : values[0]) result.push_back(value.value);
  return result;
}

void expect_values(const onnx::ModelProto& model, std::vector<double> x, const std::vector<double>& expected) {
  const auto values = values_of(model, std::move(x));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, expected);
}

// Returns the body of a branch, which applies one op to x, a value outside the body, and returns y.
onnx::GraphProto branch(const std::string& op) {
  onnx::ModelProto model;
  add_node(model, op, {"x"}, {"y"});
  add_output(model, "y");
  return graph_of(std::move(model));
}

TEST(Bodies, AConstantConditionTakesOneBranch) {
  for (const double condition : {0.0, 1.0}) {
    auto model = empty_model(13);
    add_input(model, "x", kFloat, {2});
    add_initializer(model, "c", {.type = TensorProto::BOOL, .values = {condition}});
    auto& node = add_node(model, "If", {"c"}, {"y"});
    add_body(node, "then_branch", branch("Neg"));
    add_body(node, "else_branch", branch("Abs"));
    add_output(model, "y");
    expect_values(model, {-3, 2}, condition != 0 ? std::vector<double>{3, -2} : std::vector<double>{3, 2});
  }
}

TEST(Bodies, AComputedConditionChoosesBetweenBothBranches) {
  auto model = empty_model(13);
  add_input(model, "x", kFloat, {2});
  add_node(model, "ReduceSum", {"x"}, {"sum"}, {{"keepdims", 0}});
  add_initializer(model, "zero", {.type = kFloat, .values = {0}});
  add_node(model, "Less", {"sum", "zero"}, {"c"});
  auto& node = add_node(model, "If", {"c"}, {"y"});
  add_body(node, "then_branch", branch("Neg"));
  add_body(node, "else_branch", branch("Identity"));
  add_output(model, "y");
  expect_values(model, {-3, 2}, {3, -2});
  expect_values(model, {-3, 4}, {-3, 4});
}

// Returns a loop in which every step computes state = state + x * iteration. The output lists the state after each
// step.
onnx::ModelProto loop_model(bool constant_count) {
  onnx::ModelProto body;
  add_input(body, "i", TensorProto::INT64, {});
  add_input(body, "go", TensorProto::BOOL, {});
  add_input(body, "state", kFloat, {2});
  add_node(body, "Cast", {"i"}, {"f"}, {{"to", kFloat}});
  add_node(body, "Mul", {"x", "f"}, {"step"});
  add_node(body, "Add", {"state", "step"}, {"next"});
  add_node(body, "Identity", {"go"}, {"still"});
  for (const char* name : {"still", "next", "next"}) add_output(body, name);
  auto model = empty_model(13);
  add_input(model, "x", kFloat, {2});
  if (constant_count) {
    add_initializer(model, "n", {.type = TensorProto::INT64, .values = {3}});
  } else {
    add_input(model, "n", TensorProto::INT64, {});
  }
  auto& node = add_node(model, "Loop", {"n", "", "x"}, {"last", "all"});
  add_body(node, "body", graph_of(std::move(body)));
  add_output(model, "all");
  return model;
}

TEST(Bodies, ALoopOfKnownLengthIsUnrolled) {
  expect_values(loop_model(true), {1, -2}, {1, -2, 2, -4, 4, -8});
}

TEST(Bodies, ALoopWhoseLengthIsDataIsRefused) {
  EXPECT_THAT(error_of(loop_model(false)), HasSubstr("trip count and its condition must be constant; 'n' is computed"));
}

TEST(Bodies, AScanGoesAlongAnAxisAndBackwards) {
  onnx::ModelProto body;
  add_input(body, "sum", kFloat, {});
  add_input(body, "element", kFloat, {});
  add_node(body, "Add", {"sum", "element"}, {"next"});
  for (const char* name : {"next", "next"}) add_output(body, name);
  auto model = empty_model(13);
  add_input(model, "x", kFloat, {3});
  add_initializer(model, "zero", {.type = kFloat, .values = {0}});
  auto& node = add_node(model, "Scan", {"zero", "x"}, {"last", "y"},
                        {{"num_scan_inputs", 1}, {"scan_input_directions", Ints{1}}});
  add_body(node, "body", graph_of(std::move(body)));
  add_output(model, "y");
  expect_values(model, {1, 2, 4}, {4, 6, 7});
}

onnx::FunctionProto& add_function(onnx::ModelProto& model, const std::string& name) {
  auto& function = *model.add_functions();
  function.set_domain("mine");
  function.set_name(name);
  auto* opset = function.add_opset_import();
  opset->set_version(13);
  function.add_input("a");
  function.add_output("b");
  return function;
}

TEST(Bodies, AFunctionIsInlinedWithTheAttributesOfItsCall) {
  auto model = empty_model(13);
  set_opset(model, "mine", 1);
  auto& function = add_function(model, "Leaky");
  auto* node = function.add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("a");
  node->add_output("b");
  auto* attribute = node->add_attribute();
  attribute->set_name("alpha");
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_ref_attr_name("slope");
  add_input(model, "x", kFloat, {2});
  add_node(model, "Leaky", {"x"}, {"m"}, {{"slope", 0.5}}).set_domain("mine");
  add_node(model, "Leaky", {"m"}, {"y"}, {{"slope", 0.25}}).set_domain("mine");
  add_output(model, "y");
  expect_values(model, {-8, 2}, {-1, 2});
}

TEST(Bodies, AFunctionThatCallsItselfIsRefused) {
  auto model = empty_model(13);
  set_opset(model, "mine", 1);
  auto& function = add_function(model, "Endless");
  auto* node = function.add_node();
  node->set_op_type("Endless");
  node->set_domain("mine");
  node->add_input("a");
  node->add_output("b");
  add_input(model, "x", kFloat, {2});
  add_node(model, "Endless", {"x"}, {"y"}).set_domain("mine");
  add_output(model, "y");
  EXPECT_THAT(error_of(model), HasSubstr("does one call itself?"));
}

TEST(Bodies, AFunctionThatDoublesItselfIsRefused) {
  auto model = empty_model(13);
  set_opset(model, "mine", 1);
  for (int level = 0; level < 20; ++level) {
    auto& function = add_function(model, cat("F", level));
    for (int half = 0; half < 2; ++half) {
      auto* node = function.add_node();
      node->set_op_type(level + 1 < 20 ? cat("F", level + 1) : "Neg");
      node->set_domain(level + 1 < 20 ? "mine" : "");
      node->add_input(half == 0 ? "a" : "m");
      node->add_output(half == 0 ? "m" : "b");
    }
  }
  add_input(model, "x", kFloat, {2});
  add_node(model, "F0", {"x"}, {"y"}).set_domain("mine");
  add_output(model, "y");
  EXPECT_THAT(error_of(model), HasSubstr("unroll to more than"));
}

}  // namespace
}  // namespace wl::testing

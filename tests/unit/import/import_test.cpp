// Tests of the importer beyond single operators: order, constants, weights, symbolic dimensions, and edge cases.
#include "compiler/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/import/weights.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "tests/unit/import/cases.h"
#include "tests/unit/ir/outputs.h"

namespace wl::testing {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Imported import_model(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  auto imported = import_onnx(model.SerializeAsString(), options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

std::vector<double> all_values(const Graph& graph, size_t output) {
  std::vector<double> result;
  const OutputValues values = values_of_outputs(graph, 1);
  for (const Value& value : values[output]) result.push_back(value.value);
  return result;
}

TEST(Import, NodesInAnyOrder) {
  auto model = empty_model();
  add_input(model, "x", kFloat, {4});
  add_node(model, "Neg", {"b"}, {"c"});
  add_node(model, "Exp", {"a"}, {"b"});
  add_node(model, "Abs", {"x"}, {"a"});
  add_output(model, "c");
  EXPECT_EQ(print(import_model(model).graph),
            "graph {\n"
            "  %0 = input \"x\" : f32[4] normal(0,1)\n"
            "  %1 = abs %0 : f32[4]\n"
            "  %2 = exp %1 : f32[4]\n"
            "  %3 = neg %2 : f32[4]\n"
            "  output \"c\" %3\n"
            "}\n");
}

TEST(Import, SmallInitializersAreLiteralsLargeOnesAreDrawn) {
  auto model = empty_model();
  add_input(model, "x", kFloat, {3});
  add_input(model, "big_x", kFloat, {20000});
  add_initializer(model, "small", {.type = kFloat, .shape = {3}, .values = {1, -2, 0.5}});
  add_initializer(model, "splat", {.type = kFloat, .shape = {3}, .values = {7, 7, 7}});
  std::vector<double> many(20000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = i % 2 == 0 ? 1 : 5;
  add_initializer(model, "big", {.type = kFloat, .shape = {20000}, .values = many});
  add_initializer(model, "unused", {.type = kFloat, .shape = {2}, .values = {1, 2}});
  add_node(model, "Mul", {"x", "small"}, {"a"});
  add_node(model, "Add", {"a", "splat"}, {"b"});
  add_node(model, "Add", {"big_x", "big"}, {"c"});
  add_output(model, "b");
  add_output(model, "c");
  const Imported imported = import_model(model);
  EXPECT_THAT(imported.weights, ElementsAre("small", "big"));
  const std::string text = print(imported.graph);
  EXPECT_THAT(text, HasSubstr("input \"small\" : f32[3] literal(1,-2,0.5)"));
  EXPECT_THAT(text, HasSubstr("constant 7 : f32[3]"));
  EXPECT_THAT(text, HasSubstr("input \"big\" : f32[20000] normal(3,2)"));
}

TEST(Import, IntegersThatCountArePlaces) {
  auto model = empty_model();
  add_input(model, "x", onnx::TensorProto::INT64, {3, 2});
  add_initializer(model, "rows", {.type = onnx::TensorProto::INT64, .shape = {3, 1}, .values = {0, 1, 2}});
  add_initializer(model, "columns", {.type = onnx::TensorProto::INT64, .shape = {3, 2}, .values = {0, 1, 0, 1, 0, 1}});
  add_initializer(model, "others", {.type = onnx::TensorProto::INT64, .shape = {3, 1}, .values = {0, 1, 3}});
  add_node(model, "Add", {"x", "rows"}, {"a"});
  add_node(model, "Mul", {"a", "columns"}, {"b"});
  add_node(model, "Sub", {"b", "others"}, {"c"});
  add_output(model, "c");
  const Imported imported = import_model(model);
  EXPECT_THAT(imported.weights, ElementsAre("others"));
  const std::string text = print(imported.graph);
  EXPECT_THAT(text, HasSubstr("iota axis=[0] : i64[3,1]"));
  EXPECT_THAT(text, HasSubstr("iota axis=[1] : i64[3,2]"));
  EXPECT_THAT(text, HasSubstr("literal(0,1,3)"));
}

TEST(Import, ShapeArithmeticFolds) {
  // The graph computes reshape(x, concat(shape(x)[0:1] * 2, [-1])).
  auto model = empty_model();
  add_input(model, "x", kFloat, {3, 4});
  add_initializer(model, "zero", {.type = TensorProto::INT64, .values = {0}});
  add_initializer(model, "two", {.type = TensorProto::INT64, .values = {2}});
  add_initializer(model, "axes", {.type = TensorProto::INT64, .shape = {1}, .values = {0}});
  add_initializer(model, "rest", {.type = TensorProto::INT64, .shape = {1}, .values = {-1}});
  add_node(model, "Shape", {"x"}, {"shape"});
  add_node(model, "Gather", {"shape", "zero"}, {"rows"});
  add_node(model, "Mul", {"rows", "two"}, {"twice"});
  add_node(model, "Unsqueeze", {"twice", "axes"}, {"list"});
  add_node(model, "Concat", {"list", "rest"}, {"target"}, {{"axis", 0}});
  add_node(model, "Reshape", {"x", "target"}, {"y"});
  add_output(model, "y");
  EXPECT_EQ(print(import_model(model).graph),
            "graph {\n"
            "  %0 = input \"x\" : f32[3,4] normal(0,1)\n"
            "  %1 = reshape %0 : f32[6,2]\n"
            "  output \"y\" %1\n"
            "}\n");
}

TEST(Import, IntegerDivisionFoldsTowardsZero) {
  auto model = empty_model();
  add_initializer(model, "a", {.type = TensorProto::INT64, .shape = {3}, .values = {7, -7, 9}});
  add_initializer(model, "b", {.type = TensorProto::INT64, .shape = {3}, .values = {2, 2, 3}});
  add_node(model, "Div", {"a", "b"}, {"y"});
  add_output(model, "y", TensorProto::INT64);
  EXPECT_THAT(all_values(import_model(model).graph, 0), ElementsAre(3, -3, 3));
}

TEST(Import, IntegersAreMultipliedWithFactorsThatAreNotWhole) {
  auto model = empty_model();
  add_initializer(model, "a", {.type = TensorProto::INT32, .shape = {1, 2}, .values = {3, 4}});
  add_initializer(model, "b", {.type = TensorProto::INT32, .shape = {2, 2}, .values = {1, -2, 1, -1}});
  add_initializer(model, "c", {.type = TensorProto::INT32, .shape = {2}, .values = {3, -3}});
  // The exact results are 3.5 + 0.75 and -5 - 0.75. They are truncated to integers.
  add_node(model, "Gemm", {"a", "b", "c"}, {"y"}, {{"alpha", 0.5}, {"beta", 0.25}});
  add_output(model, "y", TensorProto::INT32);
  EXPECT_THAT(all_values(import_model(model).graph, 0), ElementsAre(4, -5));
}

TEST(Import, NaturalNumbersAreMultipliedWithNegativeFactors) {
  auto model = empty_model();
  add_initializer(model, "a", {.type = TensorProto::UINT32, .shape = {1, 2}, .values = {3, 4}});
  add_initializer(model, "b", {.type = TensorProto::UINT32, .shape = {2, 1}, .values = {1, 1}});
  add_initializer(model, "c", {.type = TensorProto::UINT32, .shape = {1}, .values = {9}});
  add_node(model, "Gemm", {"a", "b", "c"}, {"y"}, {{"alpha", -1.0}, {"beta", 2.0}});
  add_output(model, "y", TensorProto::UINT32);
  EXPECT_THAT(all_values(import_model(model).graph, 0), ElementsAre(11));
}

TEST(Import, DequantisingToATypeThatIsNotTheScales) {
  onnx::ModelProto model = empty_model(23);
  add_input(model, "x", TensorProto::INT8, {2});
  add_input(model, "scale", TensorProto::FLOAT16, {});
  auto* wide = add_node(model, "DequantizeLinear", {"x", "scale"}, {"y"}).add_attribute();
  wide->set_name("output_dtype");
  wide->set_type(onnx::AttributeProto::INT);
  wide->set_i(TensorProto::FLOAT);
  add_output(model, "y");
  const Graph graph = import_model(model).graph;
  EXPECT_EQ(graph.nodes[static_cast<size_t>(graph.outputs[0].node)].dtype, DType::f32);
}

// Returns the dtype of the only node with this op; a test fails if there is none or several.
DType dtype_of_only(const Graph& graph, Op op) {
  std::vector<DType> found;
  for (const Node& node : graph.nodes)
    if (node.op == op) found.push_back(node.dtype);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? DType::b1 : found[0];
}

TEST(Import, DequantisingWideIntegersWithANarrowScaleSubtractsExactly) {
  auto model = empty_model(21);
  add_initializer(model, "x", {.type = TensorProto::INT16, .shape = {2}, .values = {2049, -2049}});
  add_initializer(model, "scale", {.type = TensorProto::FLOAT16, .shape = {}, .values = {0x3c00}});
  add_initializer(model, "zero", {.type = TensorProto::INT16, .shape = {}, .values = {2048}});
  add_node(model, "DequantizeLinear", {"x", "scale", "zero"}, {"y"});
  add_output(model, "y", TensorProto::FLOAT16);
  // The scale is 1, as bits. Neither 2049 nor -4097 is a value of f16; the evaluation does not round the result.
  const Graph graph = import_model(model).graph;
  EXPECT_THAT(all_values(graph, 0), ElementsAre(1, -4097));
  EXPECT_EQ(dtype_of_only(graph, Op::sub), DType::f32) << print(graph);
  EXPECT_EQ(graph.nodes[static_cast<size_t>(graph.outputs[0].node)].dtype, DType::f16);
}

TEST(Import, QuantisingNarrowFloatsToWideIntegersAddsExactly) {
  auto model = empty_model(21);
  add_input(model, "x", TensorProto::FLOAT16, {2});
  add_initializer(model, "scale", {.type = TensorProto::FLOAT16, .shape = {}, .values = {0x3c00}});
  add_initializer(model, "zero", {.type = TensorProto::UINT16, .shape = {}, .values = {32769}});
  add_node(model, "QuantizeLinear", {"x", "scale", "zero"}, {"y"});
  add_output(model, "y", TensorProto::UINT16);
  const Graph graph = import_model(model).graph;
  EXPECT_EQ(dtype_of_only(graph, Op::add), DType::f32) << print(graph);  // 32769 is no value of f16
}

TEST(Import, WholeNumbersOfWindowsAreNotMissed) {
  auto model = empty_model();
  add_initializer(model, "n", {.type = TensorProto::INT64, .shape = {}, .values = {10}});
  add_node(model, "BlackmanWindow", {"n"}, {"y"}, {{"output_datatype", TensorProto::INT8}});
  add_output(model, "y", TensorProto::INT8);
  EXPECT_THAT(all_values(import_model(model).graph, 0), ElementsAre(0, 0, 0, 0, 0, 1, 0, 0, 0, 0));
}

TEST(Import, ResizedIntegersAreRoundedAndKeepTheirDigits) {
  auto model = empty_model(19);
  add_initializer(model, "x", {.type = TensorProto::INT64, .shape = {1, 1, 1, 2}, .values = {4000000001, 4000000004}});
  add_initializer(model, "s", {.type = TensorProto::FLOAT, .shape = {4}, .values = {1, 1, 1, 2}});
  // The exact results are 4e9 plus 1, 1.75, 3.25 and 4. They are rounded to integers.
  add_node(model, "Resize", {"x", "", "s"}, {"y"}, {{"mode", "linear"}});
  add_output(model, "y", TensorProto::INT64);
  EXPECT_THAT(all_values(import_model(model).graph, 0), ElementsAre(4000000001, 4000000002, 4000000003, 4000000004));
}

TEST(Import, NGramsOfOneColumnAreAddedUp) {
  auto model = empty_model();
  add_initializer(model, "x", {.type = TensorProto::INT64, .shape = {5}, .values = {7, 8, 5, 6, 7}});
  add_node(model, "TfIdfVectorizer", {"x"}, {"y"},
           {{"mode", "TF"},
            {"min_gram_length", 2},
            {"max_gram_length", 2},
            {"max_skip_count", 0},
            {"ngram_counts", std::vector<int64_t>{0, 1}},
            {"ngram_indexes", std::vector<int64_t>{0, 1, 1, 3}},
            {"pool_int64s", std::vector<int64_t>{2, 5, 6, 7, 8, 6, 7}}});
  add_output(model, "y");
  EXPECT_THAT(all_values(import_model(model).graph, 0), ElementsAre(0, 2, 0, 1));
}

TEST(Import, StatisticsOfALayerNormalizationHaveTheTypeThatItSays) {
  for (const int input : {TensorProto::DOUBLE, TensorProto::FLOAT16}) {
    for (const int stash : {TensorProto::FLOAT, TensorProto::BFLOAT16}) {
      onnx::ModelProto model = empty_model();
      for (const char* name : {"x", "s"}) add_input(model, name, input, {3, 4});
      add_node(model, "LayerNormalization", {"x", "s"}, {"y", "m", "d"}, {{"stash_type", stash}, {"axis", 0}});
      for (const char* name : {"y", "m", "d"}) add_output(model, name);
      const Graph graph = import_model(model).graph;
      const DType wanted = stash == TensorProto::FLOAT ? DType::f32 : DType::bf16;
      for (size_t i = 1; i < 3; ++i) {
        EXPECT_EQ(graph.nodes[static_cast<size_t>(graph.outputs[i].node)].dtype, wanted) << input << " " << i;
      }
    }
  }
}

TEST(Import, SymbolicDimensions) {
  auto model = empty_model();
  add_input(model, "x", kFloat, {0, 4});
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("batch");
  add_node(model, "Relu", {"x"}, {"y"});
  add_output(model, "y");
  const Imported imported = import_model(model, {.bind = {{"batch", 8}}});
  EXPECT_EQ(imported.graph.nodes[static_cast<size_t>(imported.graph.outputs[0].node)].shape, (Shape{8, 4}));
}

TEST(Import, ScalarsAndEmptyTensors) {
  auto model = empty_model();
  add_input(model, "s", kFloat, {});
  add_input(model, "e", kFloat, {0, 4});
  add_node(model, "Exp", {"s"}, {"a"});
  add_node(model, "Softmax", {"e"}, {"b"});
  add_node(model, "ReduceSum", {"e"}, {"c"}, {{"keepdims", 0}});
  add_node(model, "MatMul", {"e", "w"}, {"d"});
  add_input(model, "w", kFloat, {4, 2});
  for (const char* name : {"a", "b", "c", "d"}) add_output(model, name);
  const Imported imported = import_model(model);
  EXPECT_EQ(all_values(imported.graph, 0).size(), 1u);
  EXPECT_EQ(all_values(imported.graph, 1).size(), 0u);
  EXPECT_THAT(all_values(imported.graph, 2), ElementsAre(0));
  EXPECT_EQ(all_values(imported.graph, 3).size(), 0u);
}

TEST(Import, OutputsMayBeInputsConstantsOrOneAnother) {
  auto model = empty_model();
  add_input(model, "x", kFloat, {2});
  add_initializer(model, "c", {.type = kFloat, .shape = {2}, .values = {1, 2}});
  add_node(model, "Identity", {"x"}, {"y"});
  for (const char* name : {"x", "c", "y"}) add_output(model, name);
  const Imported imported = import_model(model);
  ASSERT_EQ(imported.graph.outputs.size(), 3u);
  EXPECT_EQ(imported.graph.outputs[0].node, imported.graph.outputs[2].node);
  EXPECT_THAT(all_values(imported.graph, 1), ElementsAre(1, 2));
}

TEST(Import, InitializersThatAreAlsoInputsAreWeights) {
  auto model = empty_model();
  add_input(model, "x", kFloat, {2});
  add_input(model, "w", kFloat, {2});
  add_initializer(model, "w", {.type = kFloat, .shape = {2}, .values = {1, 2}});
  add_node(model, "Add", {"x", "w"}, {"y"});
  add_output(model, "y");
  EXPECT_THAT(import_model(model).weights, ElementsAre("w"));
}

TEST(Import, IntegersOfFourBitsAreReadFromBytes) {
  auto model = empty_model(21);
  add_input(model, "x", kFloat, {3});
  add_input(model, "data", kUint4, {3, 6});
  add_initializer(model, "even", {.type = kInt4, .shape = {2, 2}, .values = {-8, 7, -1, 3}});
  add_initializer(model, "odd", {.type = kUint4, .shape = {3}, .values = {15, 2, 9}});
  add_node(model, "Cast", {"even"}, {"y"}, {{"to", TensorProto::INT32}});
  add_node(model, "Cast", {"odd"}, {"reals"}, {{"to", TensorProto::FLOAT}});
  add_node(model, "Mul", {"reals", "x"}, {"z"});
  add_node(model, "Cast", {"data"}, {"wide"}, {{"to", TensorProto::INT32}});
  for (const char* name : {"y", "z", "wide"}) add_output(model, name);
  const Imported imported = import_model(model);
  EXPECT_THAT(all_values(imported.graph, 0), ElementsAre(-8, 7, -1, 3));
  EXPECT_THAT(print(imported.graph), HasSubstr("input \"data\" : u8[3,3] uniform(0,256)"));
  for (const double value : all_values(imported.graph, 2)) EXPECT_TRUE(value >= 0 && value < 16);

  std::map<std::string, std::pair<Shape, std::string>> stored;
  const absl::Status visited = visit_weights(
      model.SerializeAsString(), [&](const std::string& name, DType dtype, const Shape& shape, std::string_view bytes) {
        EXPECT_EQ(dtype, DType::u8);
        stored[name] = {shape, std::string(bytes)};
        return absl::OkStatus();
      });
  EXPECT_TRUE(visited.ok()) << visited;
  EXPECT_EQ(stored["even"], std::pair(Shape({2, 1}), std::string("\x78\x3f")));
  EXPECT_EQ(stored["odd"], std::pair(Shape({2}), std::string("\x2f\x09")));
}

TEST(Import, ReportsBytesThatAreMissing) {
  auto model = empty_model(21);
  add_initializer(model, "w", {.type = kInt4, .shape = {5}, .values = {1, 2, 3}});
  add_node(model, "Cast", {"w"}, {"y"}, {{"to", kFloat}});
  add_output(model, "y");
  EXPECT_EQ(error_of(model), "initializer w: shape has 3 bytes, the data has 2");
}

TEST(Import, SameBytesSameGraph) {
  const std::string bytes = model_of(import_cases()[0]).SerializeAsString();
  EXPECT_EQ(print(import_onnx(bytes)->graph), print(import_onnx(bytes)->graph));
}

}  // namespace
}  // namespace wl::testing

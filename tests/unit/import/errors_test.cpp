// Faulty models: for each mistake, the error message names the place and says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/import/import.h"
#include "tests/unit/import/cases.h"

namespace wl::testing {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

// Returns the model z = x + y, with x, y: float[2,3], for a test to break.
onnx::ModelProto sum_model() {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", kFloat, {2, 3});
  add_input(model, "y", kFloat, {2, 3});
  add_node(model, "Add", {"x", "y"}, {"z"}).set_name("sum");
  add_output(model, "z");
  return model;
}

TEST(ImportErrors, TheModelTheyBreakIsFine) {
  EXPECT_EQ(error_of(sum_model()), "no error");
}

TEST(ImportErrors, ABiasOfOtherChannels) {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    onnx::ModelProto model = empty_model();
    add_input(model, "x", kFloat, {1, 1, 5});
    add_input(model, "w", kFloat, {1, 1, 3});
    add_input(model, "b", kFloat, {4});
    add_node(model, op, {"x", "w", "b"}, {"y"});
    add_output(model, "y");
    EXPECT_THAT(error_of(model), HasSubstr("a bias of shape [4] does not fit 1 output channels")) << op;
  }
}

TEST(ImportErrors, AttributesThatContradictRecurrentWeights) {
  const auto said = [](const CaseAttribute& attribute) {
    onnx::ModelProto model = empty_model();
    add_input(model, "x", kFloat, {5, 2, 3});
    add_input(model, "w", kFloat, {1, 12, 3});
    add_input(model, "r", kFloat, {1, 12, 4});
    add_node(model, "GRU", {"x", "w", "r"}, {"y"}, {{"hidden_size", 4}, attribute});
    add_output(model, "y");
    return error_of(model);
  };
  EXPECT_EQ(said({"clip", 2.0}), "no error");
  EXPECT_THAT(said({"clip", -1.0}), HasSubstr("clip is -1; it bounds magnitudes"));
  EXPECT_THAT(said({"clip", 0.0}), HasSubstr("clip is 0; it bounds magnitudes"));
  onnx::ModelProto model = empty_model();
  add_input(model, "x", kFloat, {5, 2, 3});
  add_input(model, "w", kFloat, {1, 4, 3});
  add_input(model, "r", kFloat, {1, 4, 4});
  add_node(model, "RNN", {"x", "w", "r"}, {"y"}, {{"hidden_size", 3}});
  add_output(model, "y");
  EXPECT_THAT(error_of(model), HasSubstr("hidden_size is 3, but R of shape [1,4,4] is for 4"));
}

TEST(ImportErrors, IntegersThatAreDequantised) {
  onnx::ModelProto model = empty_model(23);
  add_input(model, "x", onnx::TensorProto::INT8, {2});
  add_input(model, "s", kFloat, {});
  add_node(model, "DequantizeLinear", {"x", "s"}, {"y"}, {{"output_dtype", onnx::TensorProto::UINT8}});
  add_output(model, "y");
  EXPECT_THAT(error_of(model), HasSubstr("output_dtype is u8; what is dequantised is a float"));
}

TEST(ImportErrors, RotaryCachesOfAnotherWidth) {
  for (const auto& [size, part] : {std::pair(3, 0), {8, 0}, {8, 4}, {2, 4}}) {
    onnx::ModelProto model = empty_model();
    set_opset(model, "", 23);
    add_input(model, "x", kFloat, {1, 1, 5, size});
    for (const char* name : {"c", "s"}) add_input(model, name, kFloat, {1, 5, 1});
    add_node(model, "RotaryEmbedding", {"x", "c", "s"}, {"y"}, {{"rotary_embedding_dim", part}});
    add_output(model, "y");
    EXPECT_THAT(error_of(model), HasSubstr("there must be a column for every two of them")) << size << " " << part;
  }
}

TEST(ImportErrors, NotOnnx) {
  EXPECT_THAT(std::string(import_onnx("").status().message()), HasSubstr("not an ONNX model: the file is empty"));
  EXPECT_THAT(std::string(import_onnx("graph {\n}\n").status().message()), HasSubstr("not an ONNX model"));
  const std::string bytes = sum_model().SerializeAsString();
  EXPECT_THAT(std::string(import_onnx(std::string_view(bytes).substr(0, bytes.size() / 2)).status().message()),
              HasSubstr("not an ONNX model: the"));
}

TEST(ImportErrors, EveryTruncationIsAnErrorOrAGraph) {
  const std::string bytes = sum_model().SerializeAsString();
  int graphs = 0;
  for (size_t size = 0; size < bytes.size(); ++size)
    graphs += import_onnx(std::string_view(bytes).substr(0, size)).ok();
  EXPECT_EQ(graphs, 0);
}

TEST(ImportErrors, UnknownOpsAreAllListed) {
  auto model = sum_model();
  add_node(model, "Frobnicate", {"x"}, {"a"}).set_name("first");
  add_node(model, "Frobnicate", {"a"}, {"b"});
  add_node(model, "Fused", {"b"}, {"c"}).set_domain("com.acme");
  EXPECT_EQ(error_of(model),
            "node \"first\" (Frobnicate): op Frobnicate of ai.onnx, opset 17, is not supported: the standard has no "
            "such op in that "
            "version; unsupported in this file: Frobnicate x2, com.acme.Fused x1");
}

TEST(ImportErrors, OpOfAnotherVersion) {
  auto model = sum_model();
  add_node(model, "Celu", {"x"}, {"a"});
  model.mutable_opset_import(0)->set_version(11);
  EXPECT_THAT(error_of(model), HasSubstr("the standard has no such op in that version (supported since opset 12)"));
  model.mutable_graph()->mutable_node(1)->set_op_type("ImageDecoder");
  model.mutable_opset_import(0)->set_version(20);
  EXPECT_THAT(error_of(model), HasSubstr("op ImageDecoder of ai.onnx, opset 20, is not supported; unsupported"));
}

TEST(ImportErrors, OpsetTooNew) {
  auto model = sum_model();
  model.mutable_opset_import(0)->set_version(99);
  EXPECT_THAT(error_of(model), HasSubstr("opset 99 of ai.onnx is newer than 28"));
  model.clear_opset_import();
  EXPECT_THAT(error_of(model), HasSubstr("names no opset version"));
}

TEST(ImportErrors, UnboundDimension) {
  auto model = sum_model();
  auto* dims = model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  dims->mutable_dim(0)->set_dim_param("batch");
  EXPECT_EQ(error_of(model), "input x: dimension 0 (batch) is not bound; pass --bind batch=N");
  EXPECT_EQ(error_of(model, {.bind = {{"batch", 2}}}), "no error");
  EXPECT_THAT(error_of(model, {.bind = {{"batch", -2}}}), HasSubstr("input x: extent -2 is negative"));
  EXPECT_THAT(error_of(model, {.bind = {{"batch", 2}, {"sequence", 8}}}),
              HasSubstr("--bind sequence=8: no input has a dimension of that name; the model has batch"));
  dims->mutable_dim(0)->clear_value();
  EXPECT_EQ(error_of(model), "input x: dimension 0 (unnamed) is not bound; pass --bind x.0=N");
}

TEST(ImportErrors, ElementType) {
  auto model = sum_model();
  model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::STRING);
  EXPECT_THAT(error_of(model), HasSubstr("input y: element type STRING is not supported"));
  model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(4711);
  EXPECT_THAT(error_of(model), HasSubstr("input y: element type number 4711 is not supported"));
}

TEST(ImportErrors, MixedElementTypes) {
  auto model = sum_model();
  model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::INT64);
  EXPECT_THAT(error_of(model), HasSubstr("node \"sum\" (Add): "));
}

TEST(ImportErrors, ShapesDoNotFit) {
  auto model = sum_model();
  model.mutable_graph()
      ->mutable_input(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_value(4);
  EXPECT_EQ(error_of(model), "node \"sum\" (Add): shapes [2,3] and [2,4] do not broadcast");
}

TEST(ImportErrors, MissingValue) {
  auto model = sum_model();
  model.mutable_graph()->mutable_node(0)->set_input(1, "w");
  EXPECT_EQ(error_of(model), "node \"sum\" (Add): reads 'w', which no input, initializer or node provides");
  model = sum_model();
  add_output(model, "q");
  EXPECT_EQ(error_of(model), "output 'q' of the graph: no node, input or initializer provides it");
  model.mutable_graph()->clear_output();
  EXPECT_EQ(error_of(model), "the graph has no outputs");
}

TEST(ImportErrors, MissingInput) {
  auto model = sum_model();
  model.mutable_graph()->mutable_node(0)->mutable_input()->RemoveLast();
  EXPECT_EQ(error_of(model), "node \"sum\" (Add): input 1 (B) is missing");
}

TEST(ImportErrors, NamesThatOccurTwice) {
  auto model = sum_model();
  add_output(model, "z");
  EXPECT_EQ(error_of(model), "two outputs of the graph are called 'z'");
  model = sum_model();
  add_node(model, "Neg", {"x"}, {"z"});
  EXPECT_EQ(error_of(model), "node #1 (Neg): output 'z' is already an output of node \"sum\" (Add)");
  model = sum_model();
  add_node(model, "Neg", {"z"}, {"x"});
  EXPECT_EQ(error_of(model), "node #1 (Neg): output 'x' is already an input of the graph");
  model = sum_model();
  add_input(model, "x", kFloat, {2, 3});
  EXPECT_EQ(error_of(model), "input x: the name occurs twice");
}

TEST(ImportErrors, Cycle) {
  auto model = sum_model();
  add_node(model, "Neg", {"b"}, {"a"}).set_name("one");
  add_node(model, "Neg", {"a"}, {"b"}).set_name("two");
  EXPECT_EQ(error_of(model),
            "the graph has a cycle; among the nodes on or after it: node \"one\" (Neg), node \"two\" (Neg)");
}

TEST(ImportErrors, Initializers) {
  auto model = sum_model();
  add_initializer(model, "w", {.type = kFloat, .shape = {3}, .values = {1, 2}});
  EXPECT_EQ(error_of(model), "initializer w: shape has 3 elements, the data has 2");
  auto* w = model.mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->set_raw_data("abcde");
  EXPECT_EQ(error_of(model), "initializer w: shape has 3 elements, the data is no whole number of them");
  w->set_data_location(TensorProto::EXTERNAL);
  auto* entry = w->add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  EXPECT_THAT(error_of(model), HasSubstr("initializer w: its values are in another file ('weights.bin')"));
  for (const char* outside :
       {"../weights.bin", "a/../../weights.bin", "/weights.bin", "a\\..\\weights.bin", "C:weights"}) {
    entry->set_value(outside);
    EXPECT_THAT(error_of(model),
                HasSubstr(cat("initializer w: its values are in '", outside, "', which is not within")));
  }
  entry->set_value("");
  EXPECT_THAT(error_of(model), HasSubstr("no location names it"));
}

TEST(ImportErrors, ShapeThatDependsOnData) {
  auto model = sum_model();
  add_input(model, "s", TensorProto::INT64, {2});
  add_node(model, "Reshape", {"x", "s"}, {"r"}).set_name("view");
  EXPECT_THAT(error_of(model), HasSubstr("node \"view\" (Reshape): input 1 ('s') decides shapes"));
}

TEST(ImportErrors, HugeShapes) {
  auto model = sum_model();
  add_initializer(model, "s", {.type = TensorProto::INT64, .shape = {3}, .values = {1e9, 1e9, 1e9}});
  add_node(model, "Expand", {"x", "s"}, {"r"}).set_name("wide");
  EXPECT_THAT(error_of(model),
              HasSubstr("node \"wide\" (Expand): a tensor of shape [1000000000,1000000000,1000000000]"));
}

TEST(ImportErrors, Metadata) {
  auto model = sum_model();
  auto* entry = model.add_metadata_props();
  entry->set_key("warploom.weight_stats");
  entry->set_value("[1, 2");
  EXPECT_EQ(error_of(model), "metadata warploom.weight_stats: expected a JSON object");
  entry->set_value("{\"x\": [1]}");
  EXPECT_EQ(error_of(model), "metadata warploom.weight_stats: 'x' must be [mean, deviation]");
  entry->set_key("warploom.int_range");
  entry->set_value("{\"x\": [3, 3]}");
  EXPECT_EQ(error_of(model), "metadata warploom.int_range: 'x' must be [low, high) in integers");
}

}  // namespace
}  // namespace wl::testing

// The schemas that the build takes from the installed onnx package, and the errors they cause.
#include "compiler/import/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/base/status.h"
#include "compiler/import/table.h"
#include "tests/unit/import/cases.h"

namespace wl::testing {
namespace {

using namespace onnx_import;  // NOLINT(google-build-using-namespace): the namespace under test

TEST(Schema, ListsVersionsInForce) {
  ASSERT_GE(newest_opset(), kNewestOpset) << schema_source();
  ASSERT_NE(schema_of("Softmax", 12), nullptr);
  EXPECT_EQ(schema_of("Softmax", 12)->since, 11);
  EXPECT_EQ(attribute_of(*schema_of("Softmax", 12), "axis")->integer, 1);
  EXPECT_EQ(attribute_of(*schema_of("Softmax", 13), "axis")->integer, -1);
  EXPECT_EQ(attribute_of(*schema_of("Conv", 11), "auto_pad")->text, "NOTSET");
  EXPECT_EQ(attribute_of(*schema_of("Gemm", 13), "alpha")->number, 1.0F);
  EXPECT_TRUE(attribute_of(*schema_of("Cast", 13), "to")->required);
  EXPECT_TRUE(schema_of("Upsample", 10)->deprecated);
  EXPECT_EQ(schema_of("Gelu", 19), nullptr);
  EXPECT_EQ(schema_of("Frobnicate", newest_opset()), nullptr);
  EXPECT_EQ(schema_of("", 1), nullptr);
}

TEST(Schema, HasEveryStandardOpOfTheTable) {
  for (const Row& row : rows()) {
    // SimplifiedLayerNormalization has no domain in exported models, but belongs to onnxruntime and has no standard
    // schema.
    if (!row.domain.empty() || row.op == "SimplifiedLayerNormalization") continue;
    EXPECT_NE(schema_of(row.op, std::min(row.until, newest_opset())), nullptr) << row.op << " since " << row.since;
  }
}

// Returns a model from x : float[2,3] to z with one node of this op.
onnx::ModelProto model_of(const std::string& op) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", kFloat, {2, 3});
  add_node(model, op, {"x"}, {"z"}).set_name("n");
  add_output(model, "z");
  return model;
}

onnx::AttributeProto& add(onnx::ModelProto& model, const std::string& name, onnx::AttributeProto::AttributeType type) {
  auto* attribute = model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}

TEST(Schema, RefusesAttributesThatAreNotTheOps) {
  auto softmax = model_of("Softmax");
  add(softmax, "axis", onnx::AttributeProto::INT).set_i(1);
  EXPECT_EQ(error_of(softmax), "no error");
  add(softmax, "axes", onnx::AttributeProto::INT).set_i(1);
  EXPECT_EQ(error_of(softmax),
            "node \"n\" (Softmax): attribute axes does not exist in Softmax, version 13: it has axis");

  auto typed = model_of("Softmax");
  add(typed, "axis", onnx::AttributeProto::FLOAT).set_f(1);
  EXPECT_EQ(error_of(typed), "node \"n\" (Softmax): attribute axis is FLOAT, expected INT");

  EXPECT_EQ(error_of(model_of("Cast")), "node \"n\" (Cast): attribute to is missing");
}

TEST(Schema, RefusesInputsThatAreNotTheOps) {
  auto two = model_of("Softmax");
  two.mutable_graph()->mutable_node(0)->add_input("x");
  EXPECT_EQ(error_of(two), "node \"n\" (Softmax): has 2 inputs; Softmax, version 13, has at most 1");

  auto none = model_of("QLinearMatMul");
  auto& node = *none.mutable_graph()->mutable_node(0);
  for (int i = 1; i < 8; ++i) node.add_input(i == 7 ? "" : "x");  // the zero point (input 7) is absent
  EXPECT_EQ(error_of(none), "node \"n\" (QLinearMatMul): input 7 (y_zero_point) is missing");
}

TEST(Schema, GivesTheValueOfWhatIsLeftOut) {
  // The default of Softmax's attribute `axis` is 1 before opset version 13, and the last axis since. For the three axes
  // here, these defaults differ.
  for (const int version : {12, 13}) {
    auto model = model_of("Softmax");
    model.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->add_dim()
        ->set_dim_value(4);
    model.mutable_opset_import(0)->set_version(version);
    const auto imported = import_onnx(model.SerializeAsString());
    ASSERT_TRUE(imported.ok()) << imported.status();
    const bool two_axes = std::any_of(imported->graph.nodes.begin(), imported->graph.nodes.end(), [](const Node& node) {
      return node.op == Op::reduce_max && node.ints.size() == 2;
    });
    EXPECT_EQ(two_axes, version == 12);
  }
}

}  // namespace
}  // namespace wl::testing

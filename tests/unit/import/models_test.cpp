// Imports the models of tests/data and, where the folder exists, of $WARPLOOM_MODELS (else ../shared/data/models).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "compiler/import/import.h"
#include "onnx/onnx_pb.h"
#include "tests/unit/file_text.h"

namespace wl {
namespace {

void import_file(const std::filesystem::path& path) {
  SCOPED_TRACE(path.string());
  const std::string bytes = testing::file_text(path);
  const auto imported = import_onnx(bytes);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(verify(imported->graph).ok()) << verify(imported->graph);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  // The graph's outputs must be those that the file declares.
  ASSERT_EQ(static_cast<int>(imported->graph.outputs.size()), model.graph().output_size());
  for (int i = 0; i < model.graph().output_size(); ++i) {
    const auto& output = imported->graph.outputs[static_cast<size_t>(i)];
    Shape shape;
    for (const auto& dim : model.graph().output(i).type().tensor_type().shape().dim()) shape.push_back(dim.dim_value());
    EXPECT_EQ(output.name, model.graph().output(i).name());
    EXPECT_EQ(imported->graph.nodes[static_cast<size_t>(output.node)].shape, shape);
  }
}

TEST(Models, TestData) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WARPLOOM_SOURCE_DIR "/tests/data")) {
    if (entry.path().extension() != ".onnx") continue;
    import_file(entry.path());
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(Models, Shared) {
  const char* set = std::getenv("WARPLOOM_MODELS");
  const std::filesystem::path folder = set != nullptr ? set : WARPLOOM_SOURCE_DIR "/../shared/data/models";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no model files in " << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") import_file(entry.path());
  }
}

TEST(Models, BertLayerWeightsAndFills) {
  const auto imported = import_onnx(testing::file_text(WARPLOOM_SOURCE_DIR "/tests/data/bert_base_layer_b1_s512.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->weights.size(), 16u);
  EXPECT_THAT(imported->source, ::testing::HasSubstr("BERT"));
  std::map<std::string, const Node*> inputs;
  for (const NodeId id : imported->graph.inputs()) {
    const Node& node = imported->graph.nodes[static_cast<size_t>(id)];
    inputs[node.text] = &node;
  }
  EXPECT_EQ(inputs.size(), 18u);
  ASSERT_TRUE(inputs.contains("ln1.weight"));
  EXPECT_DOUBLE_EQ(inputs["ln1.weight"]->fill.mean, 1.0);
  EXPECT_DOUBLE_EQ(inputs["ln1.weight"]->fill.stddev, 0.09928);
  EXPECT_EQ(inputs["x"]->fill, Fill{});
}

TEST(Models, LabelsHaveTheirRange) {
  const auto imported = import_onnx(testing::file_text(WARPLOOM_SOURCE_DIR "/tests/data/softmax_xent.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  for (const NodeId id : imported->graph.inputs()) {
    const Node& node = imported->graph.nodes[static_cast<size_t>(id)];
    EXPECT_EQ(node.fill.high, node.text == "labels" ? 32000 : Fill{}.high);
  }
}

}  // namespace
}  // namespace wl

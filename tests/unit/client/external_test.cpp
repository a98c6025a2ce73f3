// ONNX models whose weights lie in separate files beside the model.
#include "client/onnx_weights/external.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "client/onnx_weights/visit.h"
#include "client/program/files.h"
#include "client/remote/graph_file.h"
#include "onnx/onnx_pb.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

using onnx::TensorProto;
using ::testing::HasSubstr;

class ExternalTest : public ProgramsTest {
 protected:
  // Writes the model z = x + w, with w : float[2,3] in the file `location` at `offset`, to root_/m.
  std::string model(const std::string& location, const std::string& offset = "", const std::string& length = "") {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto& graph = *model.mutable_graph();
    auto* x = graph.add_input();
    x->set_name("x");
    auto* type = x->mutable_type()->mutable_tensor_type();
    type->set_elem_type(TensorProto::FLOAT);
    TensorProto& w = *graph.add_initializer();
    w.set_name("w");
    w.set_data_type(TensorProto::FLOAT);
    for (const int extent : {2, 3}) {
      type->mutable_shape()->add_dim()->set_dim_value(extent);
      w.add_dims(extent);
    }
    w.set_data_location(TensorProto::EXTERNAL);
    const auto say = [&](const char* key, const std::string& value) {
      if (value.empty()) return;
      auto* entry = w.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    say("location", location);
    say("offset", offset);
    say("length", length);
    auto* node = graph.add_node();
    node->set_op_type("Add");
    node->add_input("x");
    node->add_input("w");
    node->add_output("z");
    graph.add_output()->set_name("z");
    const std::string path = root_ + "/m/model.onnx";
    EXPECT_TRUE(make_folders(root_ + "/m").ok());
    EXPECT_TRUE(write_file(path, model.SerializeAsString()).ok());
    return path;
  }

  // Returns the error of importing the model. Expects that reading the model's weights fails with the same error.
  std::string error(const std::string& path) {
    const auto graph = read_graph(path, {}, {64, 32, 48});
    const auto weights = visit_onnx(path, [](const auto&...) { return absl::OkStatus(); });
    EXPECT_EQ(graph.status(), weights);
    return std::string(weights.message());
  }

  const std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
  const std::string bytes_ = std::string(reinterpret_cast<const char*>(values_.data()), 24);
};

TEST_F(ExternalTest, ValuesAreReadFromTheirPlace) {
  ASSERT_TRUE(make_folders(root_ + "/m/data").ok());
  ASSERT_TRUE(write_file(root_ + "/m/data/all.bin", "1234" + bytes_ + "rest").ok());
  for (const char* length : {"", "24"}) {
    const std::string path = model("data/all.bin", "4", length);
    const auto file = read_graph(path, {}, {64, 32, 48});
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->weights, std::vector<std::string>{"w"});
    EXPECT_EQ(file->graph.nodes[static_cast<size_t>(file->graph.inputs()[1])].fill.literal.size(), 6u);
    std::map<std::string, std::string> arrays;
    const absl::Status status =
        visit_onnx(path, [&](const std::string& name, DType, const Shape&, std::string_view bytes) {
          arrays[name] = bytes;
          return absl::OkStatus();
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(arrays.at("w"), bytes_);
  }
}

TEST_F(ExternalTest, WhatCannotBeReadIsNamed) {
  const std::string m = root_ + "/m/", at = m + "model.onnx: initializer w: ";
  EXPECT_EQ(error(model("w.bin")), at + "cannot read " + m + "w.bin: No such file or directory");
  ASSERT_TRUE(write_file(m + "w.bin", bytes_).ok());
  EXPECT_EQ(error(model("w.bin")), "");
  EXPECT_EQ(error(model("w.bin", "4")),
            at + "cannot read " + m + "w.bin: it has 24 bytes, 24 from byte 4 on were expected");
  EXPECT_EQ(error(model("w.bin", "9000000000000000000")),
            at + "cannot read " + m + "w.bin: it has 24 bytes, 24 from byte 9000000000000000000 on were expected");
  EXPECT_EQ(error(model("w.bin", "-4")), at + "offset of its external data is '-4', expected a number of bytes");
  EXPECT_EQ(error(model("w.bin", "0", "20")), at + "f32[2,3] needs 24 bytes, its external data has 20");
  ASSERT_TRUE(make_folders(m + "folder").ok());
  EXPECT_EQ(error(model("folder")), at + "cannot read " + m + "folder: it is a folder, expected a regular file");
}

TEST_F(ExternalTest, NothingOutsideTheModelsFolderIsRead) {
  const std::string m = root_ + "/m/", path = model("w.bin");
  ASSERT_TRUE(write_file(root_ + "/secret", bytes_).ok());
  EXPECT_THAT(error(model("../secret")), HasSubstr("'../secret', which is not within the model's folder"));
  EXPECT_THAT(error(model(root_ + "/secret")), HasSubstr("which is not within the model's folder"));
  std::filesystem::create_symlink(root_ + "/secret", m + "w.bin");
  EXPECT_THAT(error(model("w.bin")), HasSubstr("w.bin: it leads out of the model's folder, to "));
  std::filesystem::create_directory_symlink(root_, m + "up");
  EXPECT_THAT(error(model("up/secret")), HasSubstr("it leads out of the model's folder"));
}

}  // namespace
}  // namespace wl

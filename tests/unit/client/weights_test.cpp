#include "client/program/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "client/onnx_weights/visit.h"
#include "client/program/files.h"
#include "compiler/import/weights.h"
#include "onnx/onnx_pb.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

using onnx::TensorProto;
using WeightsTest = ProgramsTest;

std::map<std::string, Array> all(const std::string& path, absl::Status* status) {
  std::map<std::string, Array> arrays;
  *status = visit_arrays(
      path,
      [&](const std::string& name, DType dtype, const Shape& shape, std::string_view bytes) {
        arrays[name] = {dtype, shape, std::string(bytes)};
        return absl::OkStatus();
      },
      visit_onnx);
  return arrays;
}

template <typename T>
std::string bytes_of(std::vector<T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TEST_F(WeightsTest, ComeOutOfAnOnnxFileInEveryEncoding) {
  onnx::ModelProto model;
  const auto add = [&](const char* name, int type, std::vector<int64_t> dims) {
    TensorProto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (int64_t extent : dims) tensor->add_dims(extent);
    return tensor;
  };
  add("raw", TensorProto::FLOAT, {2, 2})->set_raw_data(bytes_of<float>({1, 2, 3, 4}));
  TensorProto* f32 = add("f32", TensorProto::FLOAT, {3});
  for (float value : {1.5F, -2.F, 0.F}) f32->add_float_data(value);
  add("f64", TensorProto::DOUBLE, {1})->add_double_data(0.1);
  add("i64", TensorProto::INT64, {1})->add_int64_data(int64_t{1} << 40);
  TensorProto* i8 = add("i8", TensorProto::INT8, {2});
  for (int value : {-1, 100}) i8->add_int32_data(value);
  add("f16", TensorProto::FLOAT16, {1})->add_int32_data(0x3c00);
  add("none", TensorProto::FLOAT, {0, 4});
  const std::string path = root_ + "/m.onnx";
  ASSERT_TRUE(write_file(path, model.SerializeAsString()).ok());
  absl::Status status;
  const auto arrays = all(path, &status);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(arrays.size(), 7u);
  EXPECT_EQ(arrays.at("raw").shape, (Shape{2, 2}));
  EXPECT_EQ(arrays.at("raw").bytes, bytes_of<float>({1, 2, 3, 4}));
  EXPECT_EQ(arrays.at("f32").bytes, bytes_of<float>({1.5, -2, 0}));
  EXPECT_EQ(arrays.at("f64").bytes, bytes_of<double>({0.1}));
  EXPECT_EQ(arrays.at("i64").bytes, bytes_of<int64_t>({int64_t{1} << 40}));
  EXPECT_EQ(arrays.at("i8").bytes, bytes_of<int8_t>({-1, 100}));
  EXPECT_EQ(arrays.at("f16").bytes, bytes_of<uint16_t>({0x3c00}));
  EXPECT_EQ(arrays.at("f16").dtype, DType::f16);

  add("short", TensorProto::FLOAT, {5})->set_raw_data("1234");
  ASSERT_TRUE(write_file(path, model.SerializeAsString()).ok());
  (void)all(path, &status);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("initializer short: f32[5] needs 20 bytes"));
}

// A model's file is about as large as its weights, so the weights are read one at a time, never the whole file.
TEST(VisitWeights, ReadsOneInitializerAtATime) {
  onnx::ModelProto model;
  for (const char* name : {"first", "second", "third"}) {
    TensorProto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(TensorProto::FLOAT);
    tensor->add_dims(1 << 18);
    tensor->set_raw_data(bytes_of(std::vector<float>(1 << 18, 1.F)));
  }
  model.mutable_graph()->set_name("after the weights");
  const std::string file = model.SerializeAsString();
  size_t given = 0;
  std::vector<size_t> given_at_visit;
  const auto visit = [&](const std::string&, DType, const Shape&, std::string_view) {
    given_at_visit.push_back(given);
    return absl::OkStatus();
  };
  const auto until = [&](size_t end, int then) {
    given = 0;
    given_at_visit.clear();
    const ByteSource source = [&, end, then](char* to, int most) {
      const size_t count = file.substr(0, end).copy(to, static_cast<size_t>(most), given);
      given += count;
      return count == 0 ? then : static_cast<int>(count);
    };
    return visit_weights(source, visit);
  };
  EXPECT_TRUE(until(file.size(), 0).ok());
  ASSERT_EQ(given_at_visit.size(), 3u);
  EXPECT_LT(given_at_visit[0], file.size() / 2);
  EXPECT_TRUE(absl::IsInvalidArgument(until(file.size() / 2, 0)));
  EXPECT_EQ(given_at_visit.size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(until(file.size() / 2, -1)));
  EXPECT_TRUE(absl::IsInvalidArgument(visit_weights("not a model", visit)));
}

TEST(VisitWeights, TakesElementsFromTheFieldOfTheirTypeOnly) {
  onnx::ModelProto model;
  TensorProto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(TensorProto::DOUBLE);
  tensor->add_dims(2);
  tensor->add_int32_data(1);
  tensor->add_int32_data(2);
  const auto status = visit_weights(model.SerializeAsString(), [](auto&&...) { return absl::OkStatus(); });
  EXPECT_EQ(status.message(), "initializer w: f64[2] needs 16 bytes, the file has 0");
}

TEST_F(WeightsTest, ComeOutOfFoldersAndSingleFiles) {
  const std::string bytes = npy_bytes(DType::f32, {1}, bytes_of<float>({7}));
  ASSERT_TRUE(make_folders(root_ + "/w").ok());
  ASSERT_TRUE(write_file(root_ + "/w/layer.0.weight.npy", bytes).ok());
  ASSERT_TRUE(write_file(root_ + "/w/b.npy", bytes).ok());
  ASSERT_TRUE(write_file(root_ + "/w/readme.txt", "no array").ok());
  absl::Status status;
  EXPECT_EQ(all(root_ + "/w", &status).count("layer.0.weight"), 1u) << status;
  EXPECT_EQ(all(root_ + "/w", &status).size(), 2u);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(all(root_ + "/w/b.npy", &status).at("b").bytes, bytes_of<float>({7}));
  ASSERT_TRUE(make_folders(root_ + "/empty").ok());
  for (const char* wrong : {"/empty", "/nowhere", "/w/readme.txt"}) {
    (void)all(root_ + wrong, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(root_ + wrong));
  }
}

}  // namespace
}  // namespace wl

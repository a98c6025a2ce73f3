#include "client/program/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "client/program/bundle.h"
#include "compiler/ir/text.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

using testing::HasSubstr;

Array array_of(Shape shape, float value) {
  Array array{DType::f32, shape, std::string(static_cast<size_t>(elements(shape)) * 4, '\0')};
  for (int64_t i = 0; i < elements(shape); ++i) {
    const float element = value + static_cast<float>(i);
    std::memcpy(array.bytes.data() + 4 * i, &element, 4);
  }
  return array;
}

float at(const Array& array, size_t index) {
  float value = 0;
  std::memcpy(&value, array.bytes.data() + 4 * index, 4);
  return value;
}

class ModelTest : public ProgramsTest {
 protected:
  // Writes a bundle of y = x + 2 w for 6 rows (with `two`: also for 2 rows) and returns its folder, or "" where there
  // is no C compiler.
  std::string bundle(bool two = false) {
    std::vector<TunedProgram> programs = {{program_of("y[i] = x[i] + w[i];"), "{}"}};
    if (two) programs.push_back({program_of("y[i] = x[i] + w[i];", 2), "{}"});
    if (programs[0].program.steps.empty()) return "";
    const std::string folder = root_ + "/bundle";
    EXPECT_TRUE(write_buckets(folder, programs).ok());
    return folder;
  }
  absl::StatusOr<Model> loaded(const Program& program) {
    EXPECT_TRUE(write_buckets(root_ + "/bundle", {{program, "{}"}}).ok());
    return Model::load(root_ + "/bundle", {.threads = 1});
  }
};

TEST_F(ModelTest, ListsAndComputes) {
  const std::string folder = bundle();
  if (folder.empty()) GTEST_SKIP() << "no C compiler on this machine";
  auto model = Model::load(folder, {.threads = 1});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->sizes(), (std::vector<Bind>{{{"rows", 6}}}));
  ASSERT_EQ(model->inputs().size(), 1u);
  EXPECT_EQ(model->inputs()[0].name, "x");
  EXPECT_EQ(model->inputs()[0].shape, (Shape{6, 32}));
  ASSERT_EQ(model->weights().size(), 1u);
  EXPECT_EQ(model->weights()[0].name, "w");
  ASSERT_EQ(model->outputs().size(), 1u);
  EXPECT_EQ(model->outputs()[0].name, "y");

  const Array x = array_of({6, 32}, 0), w = array_of({32}, 100);
  EXPECT_EQ(model->run({{"x", x}}).status().code(), absl::StatusCode::kFailedPrecondition) << "w has no values";
  EXPECT_FALSE(model->set_weight("v", w).ok());
  EXPECT_FALSE(model->set_weight("x", x).ok()) << "an input is no weight";
  EXPECT_FALSE(model->set_weight("w", x).ok()) << "another shape";
  ASSERT_TRUE(model->set_weight("w", w).ok());
  const auto y = model->run({{"x", x}});
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ(y->size(), 1u);
  EXPECT_EQ(y->at("y").shape, (Shape{6, 32}));
  for (size_t i = 0; i < 6 * 32; ++i) EXPECT_EQ(at(y->at("y"), i), static_cast<float>(i) + 2 * (100 + i % 32));

  EXPECT_THAT(std::string(model->run({}).status().message()), HasSubstr("input x (f32[6,32]) is not given"));
  EXPECT_THAT(std::string(model->run({{"x", x}, {"q", x}}).status().message()), HasSubstr("no input is named q"));
  EXPECT_THAT(std::string(model->run({{"x", array_of({5, 32}, 0)}}).status().message()),
              HasSubstr("input x is f32[6,32], the given array is f32[5,32]"));
}

TEST_F(ModelTest, PicksTheSizeByTheInputs) {
  const std::string folder = bundle(/*two=*/true);
  if (folder.empty()) GTEST_SKIP() << "no C compiler on this machine";
  auto model = Model::load(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->sizes().size(), 2u);
  ASSERT_TRUE(model->set_weight("w", array_of({32}, 0)).ok());
  for (int64_t rows : {2, 6, 2}) {
    const auto y = model->run({{"x", array_of({rows, 32}, 1)}});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(y->at("y").shape, (Shape{rows, 32}));
    EXPECT_EQ(at(y->at("y"), 33), 1 + 33 + 2 * 1) << "the weight was set once for all sizes";
  }
  EXPECT_THAT(std::string(model->run({{"x", array_of({4, 32}, 1)}}).status().message()),
              HasSubstr("tuned for rows=6; rows=2"));
}

TEST_F(ModelTest, ServesSeveralThreads) {
  const std::string folder = bundle();
  if (folder.empty()) GTEST_SKIP() << "no C compiler on this machine";
  auto model = Model::load(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(model->generate_weights(1).ok());
  std::vector<std::thread> threads;
  const float w0 = at(model->run({{"x", array_of({6, 32}, 0)}})->at("y"), 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto y = model->run({{"x", array_of({6, 32}, static_cast<float>(t))}});
        EXPECT_NEAR(at(y->at("y"), 0), static_cast<float>(t) + w0, 1e-5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ModelTest, ADamagedBundleIsFound) {
  const std::string folder = bundle(/*two=*/true);
  if (folder.empty()) GTEST_SKIP() << "no C compiler on this machine";
  const std::string index = read_file(folder + "/buckets.json").value();
  std::string other = index;
  other.replace(other.find("\"rows\": 2"), 9, "\"rows\": 3");
  ASSERT_TRUE(write_file(folder + "/buckets.json", other).ok());
  EXPECT_EQ(Model::load(folder).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(write_file(folder + "/buckets.json", index).ok());
  const std::string manifest = read_file(folder + "/rows=6/manifest.json").value();
  ASSERT_TRUE(write_file(folder + "/rows=2/manifest.json", manifest).ok());
  EXPECT_EQ(Model::load(folder).status().code(), absl::StatusCode::kDataLoss) << "the sizes changed places";
}

TEST(Buckets, CombineValues) {
  EXPECT_EQ(combinations({}), (std::vector<Bind>{{}}));
  EXPECT_EQ(combinations({{"b", {1, 8}}, {"n", {64}}}),
            (std::vector<Bind>{{{"b", 1}, {"n", 64}}, {{"b", 8}, {"n", 64}}}));
  EXPECT_EQ(bind_text({{"b", 1}, {"n", 64}}), "b=1,n=64");
}

TEST(Buckets, OnlyWhatFitsExactlyServes) {
  const auto bucket = [](int64_t n) { return Bucket{{{"n", n}}, "", {{"x", DType::f32, {n, 4}}}, {}}; };
  const std::vector<Bucket> buckets = {bucket(64), bucket(128)};
  EXPECT_EQ(pick_bucket(buckets, {{"n", 128}}, {}).value(), 1u);
  EXPECT_EQ(pick_bucket(buckets, {}, {{"x", {64, 4}}}).value(), 0u);
  for (const auto& wrong :
       {pick_bucket(buckets, {}, {}), pick_bucket(buckets, {{"n", 96}}, {}), pick_bucket(buckets, {}, {{"x", {96, 4}}}),
        pick_bucket(buckets, {{"m", 64}}, {}), pick_bucket(buckets, {{"n", 64}}, {{"x", {128, 4}}}),
        pick_bucket({bucket(64)}, {{"n", 96}}, {})}) {
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("tuned for n=64"));
  }
}

// The program's weight w is folded from a: the elements of a, transposed.
TEST_F(ModelTest, PutsTheElementsOfAWeightIntoTheOrderInWhichKernelsReadIt) {
  Program program = program_of("y[i] = x[i] + w[i];");
  NEEDS_COMPILER(program);
  program.folded.push_back(
      {"w", parse("graph {\n  %0 = input \"a\" : f32[4,8] normal(0,1)\n  %1 = transpose %0 perm=[1,0] "
                  ": f32[8,4]\n  %2 = reshape %1 : f32[32]\n  output \"w\" %2\n}\n")
                .value()});
  auto model = loaded(program);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(absl::IsInvalidArgument(model->set_weight("a", DType::f32, {4, 8}, std::string(124, '\0'))));
  ASSERT_TRUE(model->set_weight("a", array_of({4, 8}, 0)).ok());
  const auto outputs = model->run({{"x", array_of({6, 32}, 0)}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (size_t i = 0; i < 32; ++i)
    EXPECT_EQ(at(outputs->at("y"), i), static_cast<float>(i + 2 * (i % 4 * 8 + i / 4))) << "element " << i;
}

// The program's weight w is folded from a * b, and the bundle has no values of a and b.
TEST_F(ModelTest, ComputesFoldedWeightsOnceTheirOperandsAreThere) {
  Program program = program_of("y[i] = x[i] + w[i];");
  NEEDS_COMPILER(program);
  program.folded.push_back(
      {"w", parse("graph {\n  %0 = input \"a\" : f32[32] normal(0,1)\n  %1 = input \"b\" : f32[32] "
                  "normal(0,1)\n  %2 = mul %0 %1 : f32[32]\n  output \"w\" %2\n}\n")
                .value()});
  auto model = loaded(program);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->weights().size(), 2u);
  EXPECT_EQ(model->weights()[0].name, "a");
  EXPECT_EQ(model->weights()[1].name, "b");

  const Array x = array_of({6, 32}, 0), a = array_of({32}, 2), b = array_of({32}, 3);
  const auto first = [&] {
    const auto outputs = model->run({{"x", x}});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? at(outputs->at("y"), 0) : -1;
  };
  EXPECT_THAT(model->run({{"x", x}}).status().message(), HasSubstr("weight a and 1 others"));
  ASSERT_TRUE(model->set_weight("b", b).ok());
  EXPECT_THAT(model->run({{"x", x}}).status().message(), HasSubstr("weight a and 0 others"));
  EXPECT_TRUE(absl::IsInvalidArgument(model->set_weight("a", array_of({31}, 2))));
  ASSERT_TRUE(model->set_weight("a", a).ok());
  EXPECT_EQ(first(), 12) << "twice 2 * 3";

  // The model freed a and b after it had computed the folded weight from them. To compute it again, the model needs
  // both, not only a new a.
  ASSERT_TRUE(model->set_weight("a", array_of({32}, 5)).ok());
  EXPECT_EQ(model->run({{"x", x}}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(model->set_weight("b", b).ok());
  EXPECT_EQ(first(), 30);

  auto random = Model::load(root_ + "/bundle", {.threads = 1});
  ASSERT_TRUE(random.ok() && random->generate_weights(1).ok());
  EXPECT_TRUE(random->run({{"x", x}}).ok());
}

}  // namespace
}  // namespace wl

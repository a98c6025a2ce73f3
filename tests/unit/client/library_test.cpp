// The C library, called through its C header and its C++ wrapper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <thread>

#include "client/c/warploom.h"
#include "client/c/warploom.hpp"
#include "client/program/bucket.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

using testing::HasSubstr;

// A buffer of `count` floats (first, first + 1, ...) that begins `off` bytes after a multiple of 64.
class Memory {
 public:
  Memory(size_t count, size_t off, float first) : bytes_(count * 4 + 128) {
    const auto at = reinterpret_cast<uintptr_t>(bytes_.data());
    data_ = reinterpret_cast<float*>((at + 63) / 64 * 64 + off);
    for (size_t i = 0; i < count; ++i) data_[i] = first + static_cast<float>(i);
  }
  float* get() { return data_; }

 private:
  std::vector<char> bytes_;
  float* data_;
};

// A bundle of y = x + 2 w in two sizes: 6 and 2 rows of 32.
class LibraryTest : public ProgramsTest {
 protected:
  void SetUp() override {
    std::vector<TunedProgram> programs;
    for (const int64_t rows : {6, 2}) programs.push_back({program_of("y[i] = x[i] + w[i];", rows), "{}"});
    if (programs[0].program.steps.empty()) GTEST_SKIP() << "no C compiler on this machine";
    folder_ = root_ + "/bundle";
    ASSERT_TRUE(write_buckets(folder_, programs).ok());
  }
  static std::string message(warploom_status* status) {
    const std::string text = cat(static_cast<int>(warploom_status_code(status)), ": ", warploom_status_message(status));
    warploom_status_free(status);
    return text;
  }

  std::string folder_;
};

TEST_F(LibraryTest, SaysWhatAModelIs) {
  warploom_model* model = nullptr;
  ASSERT_EQ(warploom_model_load(folder_.c_str(), nullptr, &model), nullptr);
  EXPECT_STREQ(warploom_version(), WARPLOOM_VERSION);
  ASSERT_EQ(warploom_model_sizes(model), 2u);
  EXPECT_STREQ(warploom_model_size_text(model, 1), "rows=2");
  EXPECT_EQ(warploom_model_size_text(model, 2), nullptr);
  EXPECT_EQ(warploom_model_count(model, WARPLOOM_INPUT), 1u);
  EXPECT_EQ(warploom_model_count(model, WARPLOOM_OUTPUT), 1u);
  EXPECT_EQ(warploom_model_count(model, WARPLOOM_WEIGHT), 1u);
  EXPECT_EQ(warploom_model_count(model, static_cast<warploom_kind>(9)), 0u);
  warploom_tensor tensor = {sizeof tensor, nullptr, WARPLOOM_I8, 0, nullptr, 0};
  ASSERT_EQ(warploom_model_tensor(model, 1, WARPLOOM_INPUT, 0, &tensor), nullptr);
  EXPECT_STREQ(tensor.name, "x");
  EXPECT_STREQ(warploom_dtype_name(tensor.dtype), "f32");
  EXPECT_EQ(warploom_dtype_name(static_cast<warploom_dtype>(16)), nullptr);
  ASSERT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.shape[0], 2);
  EXPECT_EQ(tensor.bytes, 2u * 32 * 4);
  const int64_t two[] = {2, 32}, four[] = {4, 32};
  const int64_t* shapes[] = {two};
  size_t size = 7;
  ASSERT_EQ(warploom_model_size_of(model, shapes, &size), nullptr);
  EXPECT_EQ(size, 1u);
  shapes[0] = four;
  EXPECT_THAT(message(warploom_model_size_of(model, shapes, &size)), HasSubstr("3: "));
  EXPECT_EQ(size, 1u);
  warploom_model_free(model);
  warploom_model_free(nullptr);
  warploom_status_free(nullptr);
  EXPECT_EQ(warploom_status_code(nullptr), WARPLOOM_OK);
  EXPECT_STREQ(warploom_status_message(nullptr), "");
}

// The library selects the size of a model by the shapes of the inputs. A model with only one size must refuse other
// shapes as well.
TEST_F(LibraryTest, ALoneSizeHasItsShapesOnly) {
  const std::string lone = root_ + "/lone";
  ASSERT_TRUE(write_buckets(lone, {{program_of("y[i] = x[i] + w[i];", 6), "{}"}}).ok());
  warploom_model* model = nullptr;
  ASSERT_EQ(warploom_model_load(lone.c_str(), nullptr, &model), nullptr);
  const int64_t six[] = {6, 32}, five[] = {5, 32};
  const int64_t* shapes[] = {six};
  size_t size = 7;
  EXPECT_EQ(warploom_model_size_of(model, shapes, &size), nullptr);
  EXPECT_EQ(size, 0u);
  shapes[0] = five;
  EXPECT_THAT(message(warploom_model_size_of(model, shapes, &size)),
              HasSubstr("3: input x: expected the shape [6,32], found [5,32]"));
  warploom_model_free(model);
}

// The functions for device memory and streams fail if a model's kernels run on CPUs.
TEST_F(LibraryTest, KernelsForCpusHaveNoStream) {
  warploom_model* model = nullptr;
  warploom_executor* executor = nullptr;
  ASSERT_EQ(warploom_model_load(folder_.c_str(), nullptr, &model), nullptr);
  ASSERT_EQ(warploom_model_generate_weights(model, 1), nullptr);
  ASSERT_EQ(warploom_executor_create(model, 0, nullptr, &executor), nullptr);
  alignas(64) float memory[6 * 32] = {};
  for (warploom_status* status :
       {warploom_executor_bind_device_input(executor, 0, memory),
        warploom_executor_bind_device_output(executor, 0, memory), warploom_executor_launch(executor, nullptr)})
    EXPECT_THAT(message(status), HasSubstr("9: the kernels run on CPUs"));
  EXPECT_THAT(message(warploom_executor_bind_device_input(executor, 7, memory)), HasSubstr("there is no input 7"));
  EXPECT_EQ(warploom_executor_run(executor), nullptr);
  warploom_executor_free(executor);
  warploom_model_free(model);
}

// A caller that was built with an older header has fewer members in its structs. The library must neither read nor
// write members beyond these.
TEST_F(LibraryTest, WritesOnlyTheMembersThatACallerKnows) {
  warploom_model* model = nullptr;
  ASSERT_EQ(warploom_model_load(folder_.c_str(), nullptr, &model), nullptr);
  warploom_tensor tensor = {offsetof(warploom_tensor, rank), nullptr, WARPLOOM_I8, 77, nullptr, 88};
  ASSERT_EQ(warploom_model_tensor(model, 0, WARPLOOM_INPUT, 0, &tensor), nullptr);
  EXPECT_EQ(tensor.dtype, WARPLOOM_F32);
  EXPECT_EQ(tensor.rank, 77);
  EXPECT_EQ(tensor.bytes, 88u);
  warploom_kernels kernels = {offsetof(warploom_kernels, replaced), WARPLOOM_CHOICE_TUNED, 99};
  ASSERT_EQ(warploom_model_kernels(model, &kernels), nullptr);
  EXPECT_EQ(kernels.chosen, WARPLOOM_CHOICE_UNKNOWN) << "a folder does not say how its kernels were chosen";
  EXPECT_EQ(kernels.replaced, 99);
  // A request of before `tune` waits for its search, whatever lies behind the struct.
  warploom_client* client = nullptr;
  ASSERT_EQ(warploom_client_open(nullptr, &client), nullptr);
  warploom_request request = {};
  request.struct_size = offsetof(warploom_request, tune);
  request.graph = "/nothing.onnx";
  request.tune = 7;
  warploom_model* found = nullptr;
  EXPECT_THAT(message(warploom_client_load(client, &request, &found, nullptr)), HasSubstr("/nothing.onnx"));
  request.struct_size = sizeof request;
  EXPECT_THAT(message(warploom_client_load(client, &request, &found, nullptr)),
              HasSubstr("tune is 7; expected 0 (wait"));
  warploom_client_free(client);
  const warploom_executor_options options = {offsetof(warploom_executor_options, threads), -5, 1, "nothing"};
  warploom_executor* executor = nullptr;
  ASSERT_EQ(warploom_executor_create(model, 0, &options, &executor), nullptr);
  warploom_executor_free(executor);
  warploom_model_free(model);
}

TEST_F(LibraryTest, ComputesInPlaceOrWithCopies) {
  warploom::Model model(folder_);
  warploom::Executor executor(model, 0, {1});
  EXPECT_EQ(executor.threads(), 1);
  EXPECT_EQ(executor.memory().workspace, 6u * 32 * 4);
  Memory w(32, 0, 100);
  EXPECT_THROW(executor.run(), warploom::Error) << "w has no values";
  model.set_weight("w", w.get(), 32 * 4);
  const auto expect = [&](const float* y, float first) {
    for (size_t i = 0; i < 6 * 32; ++i)
      ASSERT_EQ(y[i], first + static_cast<float>(i) + 2 * (100 + static_cast<float>(i % 32))) << i;
  };
  for (const size_t off : {0, 4, 64, 32}) {
    Memory x(6 * 32, off, 5 + static_cast<float>(off)), y(6 * 32, off, 0);
    executor.bind_input(0, x.get());
    executor.bind_output(0, y.get());
    EXPECT_EQ(executor.input(0) == x.get(), off % 64 == 0) << "memory at multiples of 64 bytes is used in place";
    EXPECT_EQ(executor.output(0) == y.get(), off % 64 == 0);
    executor.run();
    expect(y.get(), 5 + static_cast<float>(off));
  }
  executor.bind_input(0, nullptr);
  executor.bind_output(0, nullptr);
  auto* const x = static_cast<float*>(executor.input(0));
  for (size_t i = 0; i < 6 * 32; ++i) x[i] = static_cast<float>(i) - 3;
  executor.run();
  expect(static_cast<const float*>(executor.output(0)), -3);
}

TEST_F(LibraryTest, ExecutorsRunAtTheSameTimeAndOutliveTheirModel) {
  std::vector<std::unique_ptr<warploom::Executor>> executors;
  {
    warploom::Model model(folder_);
    Memory w(32, 0, 1);
    for (size_t t = 0; t < 4; ++t)
      executors.push_back(
          std::make_unique<warploom::Executor>(model, t % 2, warploom::ExecutorOptions{static_cast<int>(1 + t / 2)}));
    model.set_weight("w", w.get(), 32 * 4);
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < executors.size(); ++t)
    threads.emplace_back([&, t] {
      Memory x(6 * 32, 0, static_cast<float>(t)), y(6 * 32, 0, 0);
      executors[t]->bind_input(0, x.get());
      executors[t]->bind_output(0, y.get());
      for (int i = 0; i < 200; ++i) {
        y.get()[33] = 0;
        executors[t]->run();
        EXPECT_EQ(y.get()[33], static_cast<float>(t) + 33 + 2 * 2);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LibraryTest, SaysWhatWasWrong) {
  warploom_model* model = nullptr;
  EXPECT_THAT(message(warploom_model_load((root_ + "/nothing").c_str(), nullptr, &model)), HasSubstr("nothing"));
  EXPECT_EQ(model, nullptr);
  EXPECT_THAT(message(warploom_model_load(nullptr, nullptr, &model)), HasSubstr("3: warploom_model_load: folder"));
  ASSERT_EQ(warploom_model_load(folder_.c_str(), nullptr, &model), nullptr);
  warploom_tensor tensor = {sizeof tensor, nullptr, WARPLOOM_I8, 0, nullptr, 0};
  EXPECT_THAT(message(warploom_model_tensor(model, 2, WARPLOOM_INPUT, 0, &tensor)), HasSubstr("there is no size 2"));
  EXPECT_THAT(message(warploom_model_tensor(model, 0, WARPLOOM_INPUT, 1, &tensor)), HasSubstr("there is no tensor 1"));
  EXPECT_THAT(message(warploom_model_set_weight(model, "v", &tensor, 4)), HasSubstr("the weights are w"));
  EXPECT_THAT(message(warploom_model_set_weight(model, "w", &tensor, 4)), HasSubstr("3: "));
  EXPECT_THAT(message(warploom_model_load_weights(model, (root_ + "/w.npz").c_str())), HasSubstr("w.npz"));
  warploom_executor* executor = nullptr;
  EXPECT_THAT(message(warploom_executor_create(model, 2, nullptr, &executor)), HasSubstr("there is no size 2"));
  const warploom_executor_options negative = {sizeof negative, -1, 0, nullptr};
  EXPECT_THAT(message(warploom_executor_create(model, 0, &negative, &executor)), HasSubstr("threads are -1"));
  EXPECT_EQ(executor, nullptr);
  ASSERT_EQ(warploom_executor_create(model, 0, nullptr, &executor), nullptr);
  EXPECT_THAT(message(warploom_executor_run(executor)), HasSubstr("9: weight w"));
  EXPECT_THAT(message(warploom_executor_bind_input(executor, 1, nullptr)), HasSubstr("there is no input 1"));
  EXPECT_THAT(message(warploom_executor_bind_output(executor, 1, nullptr)), HasSubstr("there is no output 1"));
  EXPECT_EQ(warploom_executor_input(executor, 1), nullptr);
  EXPECT_EQ(warploom_executor_output(executor, 1), nullptr);
  warploom_executor_free(executor);
  warploom_model_free(model);
}

}  // namespace
}  // namespace wl

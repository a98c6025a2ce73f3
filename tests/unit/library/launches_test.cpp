// Kernels that call oneDNN, with the real library: several threads may run one kernel at the same time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "compiler/target/prelude/onednn.h"

namespace {

constexpr long kRows = 64, kDepth = 96, kColumns = 128;

wl_onednn::Tensor tensor(int argument, int name, long rows, long columns, int free) {
  return {argument, name, 2, 0, free, {rows, columns}, {columns, 1}};
}

// Returns a product whose tensors keep their own formats in memory (free = 0), or get formats that oneDNN chooses
// (free = 1).
wl_onednn::Primitive product(int free) {
  return {
      0,
      3,
      0,
      {tensor(0, 1, kRows, kDepth, free), tensor(1, 33, kDepth, kColumns, free), tensor(2, 17, kRows, kColumns, free)},
      {},
      {}};
}

TEST(OneDnn, LaunchesAtOnceShareNothing) {
  static const wl_onednn::Primitive kPrimitives[] = {product(0), product(1)};
  static const wl_onednn::Block kBlocks[] = {{0, {}}, {1, {}}};
  static wl_onednn::Kernel kernel = {kPrimitives, kBlocks, 2, 1, nullptr, {}};
  if (const char* const problem = wl_onednn::prepare(kernel)) GTEST_SKIP() << problem;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 1; t <= 8; ++t)
    threads.emplace_back([&wrong, t] {
      std::vector<float> left(kRows * kDepth, static_cast<float>(t)), right(kDepth * kColumns, 0.5f);
      std::vector<float> result(kRows * kColumns);
      void* const arguments[] = {left.data(), right.data(), result.data()};
      const float expected = 0.5f * static_cast<float>(kDepth * t);
      for (int i = 0; i < 500; ++i) {
        std::fill(result.begin(), result.end(), 0.0f);
        wl_onednn::run(kernel, i % 2, arguments);
        wrong += std::any_of(result.begin(), result.end(), [&](float value) { return value != expected; }) ? 1 : 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  wl_onednn::release(kernel);
}

}  // namespace

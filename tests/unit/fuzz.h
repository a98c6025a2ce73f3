// The number of cases of random tests, and their seeds. WARPLOOM_TEST_SCALE multiplies every count: `make test` runs at
// 1, `make test-long` at 10, the sanitizers below 1. WARPLOOM_TEST_SEED sets the first seed. Seeds are printed, and a
// failure names its own. A test of many seeds is divided into shards, so that ctest runs it on every core.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace wl::testing {

// Returns `count` times WARPLOOM_TEST_SCALE, at least 1.
inline int64_t scaled(int64_t count) {
  const char* text = std::getenv("WARPLOOM_TEST_SCALE");
  const double scale = text == nullptr ? 1 : std::strtod(text, nullptr);
  return std::max<int64_t>(1, std::llround(static_cast<double>(count) * scale));
}

// Returns the first seed, WARPLOOM_TEST_SEED or `otherwise`, and prints it.
inline uint64_t test_seed(uint64_t otherwise) {
  const char* text = std::getenv("WARPLOOM_TEST_SEED");
  const uint64_t seed = text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  std::printf("WARPLOOM_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Base class of a test that is instantiated over Range(0, kShards). Each shard has its own range of seeds.
inline constexpr int kShards = 8;
class Sharded : public ::testing::TestWithParam<int> {
 protected:
  struct Seeds {
    uint64_t first, last;  // half-open: `last` is not included
  };
  // Returns this shard's part of scaled(`count`) seeds, beginning at `otherwise`.
  static Seeds seeds(int64_t count, uint64_t otherwise) {
    const auto all = static_cast<uint64_t>(scaled(count)), shard = static_cast<uint64_t>(GetParam());
    const uint64_t base = test_seed(otherwise);
    const Seeds out{base + all * shard / kShards, base + all * (shard + 1) / kShards};
    std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(out.first),
                static_cast<unsigned long long>(out.last) - 1);
    return out;
  }
};

}  // namespace wl::testing

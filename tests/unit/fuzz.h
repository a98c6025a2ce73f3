// Scale and seeds of the random tests. WARPLOOM_TEST_SCALE multiplies the count of every test: `make test` uses 0.05,
// `make test-long` 10, the sanitizers 0.1. If the scale is below 1, tests over long lists run only a part of them.
// WARPLOOM_TEST_SEED replaces the first seed. The seeds are printed, and a failure names its seed. A test of many seeds
// is divided into shards, so that ctest can run it on all cores.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <vector>

namespace wl::testing {

// Returns WARPLOOM_TEST_SCALE, or 1 where it is not set.
inline double test_scale() {
  const char* text = std::getenv("WARPLOOM_TEST_SCALE");
  return text == nullptr ? 1 : std::strtod(text, nullptr);
}

// Whether this is a slow build, with a sanitizer: the presets of sanitizers set WARPLOOM_PATIENCE.
inline bool is_slow_build() {
  return std::getenv("WARPLOOM_PATIENCE") != nullptr;
}

// Returns a time limit: `seconds` times WARPLOOM_PATIENCE, which the presets of slow (sanitized) builds set to 10.
inline std::chrono::seconds patience(int64_t seconds) {
  const char* text = std::getenv("WARPLOOM_PATIENCE");
  return std::chrono::seconds(text == nullptr ? seconds : seconds * std::strtoll(text, nullptr, 10));
}

// Returns `count` times WARPLOOM_TEST_SCALE, at least 1.
inline int64_t scaled(int64_t count) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(count) * test_scale()));
}

// Returns the whole list if the scale is 1 or more, else an evenly spread part of it with at least one element. Each
// `turn` shifts the part by one element, so that successive turns cover the list.
template <typename T>
std::vector<T> sampled(const std::vector<T>& all, uint64_t turn = 0) {
  const double scale = test_scale();
  if (scale >= 1 || all.empty()) return all;
  std::vector<T> out;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto at = static_cast<double>((i + turn) % all.size());
    if (std::floor((at + 1) * scale) > std::floor(at * scale)) out.push_back(all[i]);
  }
  if (out.empty()) out.push_back(all[turn % all.size()]);
  return out;
}

template <typename T, size_t N>
std::vector<T> sampled(const T (&all)[N], uint64_t turn = 0) {
  return sampled(std::vector<T>(std::begin(all), std::end(all)), turn);
}

// Returns the first seed of a test, which is WARPLOOM_TEST_SEED if that is set, else `otherwise`. Prints it.
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
    uint64_t first, last;  // the seeds from `first` up to, but without, `last`
  };
  // Returns this shard's part of scaled(`count`) successive seeds. The first seed of all shards is WARPLOOM_TEST_SEED
  // or, if that is not set, `otherwise`.
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

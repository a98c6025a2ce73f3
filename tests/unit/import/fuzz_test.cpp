// Whatever the bytes, importing ends with a verified graph or a Status. The seed is printed; WARPLOOM_FUZZ_SEED and
// WARPLOOM_FUZZ_RUNS repeat or prolong a run. tests/fuzz/onnx_import.cpp is the same property under libFuzzer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "compiler/import/import.h"
#include "tests/unit/import/cases.h"
#include "tests/unit/import/mutate.h"

namespace wl::testing {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* set = std::getenv(variable);
  return set != nullptr ? std::strtoull(set, nullptr, 10) : otherwise;
}

// Returns whether it was a graph.
bool import_survives(const std::string& bytes) {
  const auto imported = import_onnx(bytes);
  if (!imported.ok()) {
    EXPECT_FALSE(imported.status().message().empty());
    return false;
  }
  EXPECT_TRUE(verify(imported->graph).ok()) << verify(imported->graph);
  return true;
}

TEST(ImportFuzz, MutatedModels) {
  const uint64_t seed = number_from("WARPLOOM_FUZZ_SEED", std::random_device{}());
  const uint64_t runs = number_from("WARPLOOM_FUZZ_RUNS", 20000);
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937_64 rng(seed);
  const auto cases = import_cases();
  uint64_t graphs = 0;
  for (uint64_t run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    auto model = model_of(cases[rng() % cases.size()]);
    mutate(model, 1 + static_cast<int>(rng() % 4), rng);
    std::string bytes = model.SerializePartialAsString();
    if (rng() % 4 == 0) mutate_bytes(bytes, 1 + static_cast<int>(rng() % 4), rng);
    graphs += import_survives(bytes);
  }
  // Too few: the mutations no longer get past the parser, and test nothing.
  EXPECT_GT(graphs, runs / 20);
  if (::testing::Test::HasFailure()) ADD_FAILURE() << "repeat with WARPLOOM_FUZZ_SEED=" << seed;
}

}  // namespace
}  // namespace wl::testing

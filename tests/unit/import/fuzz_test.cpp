// Importing arbitrary bytes ends with a verified graph or an error Status. tests/fuzz/onnx_import.cpp checks the same
// with libFuzzer.
#include "tests/unit/fuzz.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/import/import.h"
#include "tests/unit/import/cases.h"
#include "tests/unit/import/mutate.h"

namespace wl::testing {
namespace {

// Imports a model of these bytes and returns whether the result was a graph.
bool import_survives(const std::string& bytes) {
  const auto imported = import_onnx(bytes);
  if (!imported.ok()) {
    EXPECT_FALSE(imported.status().message().empty());
    return false;
  }
  EXPECT_TRUE(verify(imported->graph).ok()) << verify(imported->graph);
  return true;
}

class ImportFuzz : public Sharded {};

TEST_P(ImportFuzz, MutatedModels) {
  const auto [first, last] = seeds(400'000, 1);
  const auto cases = import_cases();
  uint64_t graphs = 0;
  for (uint64_t seed = first; seed < last; ++seed) {
    std::mt19937_64 rng(seed);
    auto model = model_of(cases[rng() % cases.size()]);
    mutate(model, 1 + static_cast<int>(rng() % 4), rng);
    std::string bytes = model.SerializePartialAsString();
    if (rng() % 4 == 0) mutate_bytes(bytes, 1 + static_cast<int>(rng() % 4), rng);
    graphs += import_survives(bytes);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "repeat with WARPLOOM_TEST_SEED=" << seed;
  }
  // At least 5 % of the mutated models must be imported as graphs, since otherwise the test tests little more than
  // the parser of ONNX files.
  EXPECT_GT(graphs, (last - first) / 20);
}

INSTANTIATE_TEST_SUITE_P(Shards, ImportFuzz, ::testing::Range(0, kShards));

}  // namespace
}  // namespace wl::testing

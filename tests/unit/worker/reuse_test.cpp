// CPU runners that are kept between batches: which later batches they serve, and what candidates of earlier batches can
// do to later ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/base/batch_id.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/kernels.h"
#include "worker/compile.h"
#include "worker/device_runner.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::candidate;
using testing::kAdd;

constexpr int64_t kBatchElements = 1024;

Batch batch_of(const std::string& id, const std::string& body = kAdd) {
  Batch batch = add_batch(kBatchElements);
  batch.id = id;
  batch.candidates = {candidate(0, body)};
  return batch;
}

// Measures a batch of one candidate and returns the process id of the runner that is kept, or 0 if none is kept.
pid_t kept(const Batch& batch, ReusedState* state, MeasureOptions options = testing::options()) {
  options.state = state;
  const absl::StatusOr<Measured> measured = measure(batch, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  if (!measured.ok() || measured->trials.size() != 1) return -1;
  EXPECT_EQ(measured->trials[0].outcome, Outcome::kCorrect) << measured->trials[0].message;
  return state->runner.running() ? state->runner.pid() : 0;
}

TEST(ReusedRunner, ServesTheRoundsOfOneSearch) {
  ReusedState state;
  const pid_t first = kept(batch_of(batch_id(1, 0, 0)), &state);
  ASSERT_GT(first, 0);
  EXPECT_EQ(kept(batch_of(batch_id(1, 0, 8)), &state), first);
  // If a batch is checked with another seed, the kept runner serves it too, and generates its inputs again.
  Batch other_seed = batch_of(batch_id(1, 0, 16));
  std::swap(other_seed.checks[0], other_seed.checks[1]);
  EXPECT_EQ(kept(other_seed, &state), first);
  const pid_t of_another_search = kept(batch_of(batch_id(11, 0, 0)), &state);
  ASSERT_GT(of_another_search, 0);
  EXPECT_NE(of_another_search, first);
}

TEST(ReusedRunner, DoesNotServePromotions) {
  ReusedState state;
  EXPECT_GT(kept(batch_of(batch_id(1, 0, 0)), &state), 0);
  Batch promotion = batch_of(batch_id(1, 1, 0));
  promotion.phase = 1;
  EXPECT_EQ(serves_of(promotion, "cpu"), "");
  EXPECT_EQ(kept(promotion, &state), 0);
  EXPECT_FALSE(state.home.has_value());
}

TEST(ReusedRunner, ServesSoManyBatchesAndNoMore) {
  ReusedState state;
  const pid_t first = kept(batch_of(batch_id(1, 0, 0)), &state);
  int64_t served = 1;
  while (served < 100 && kept(batch_of(batch_id(1, 0, 8 * served)), &state) == first) ++served;
  EXPECT_EQ(served, 16);
}

// The candidate of the first batch is correct and keeps most of the memory that its runner's process may use. The
// candidate of the second batch needs some memory: it fails in the same runner, so it is tried in a new runner, where
// it is correct.
TEST(ReusedRunner, DamageOfEarlierBatchesCondemnsNobody) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' allocators have no limit";
#endif
  constexpr const char* kTakesMost =
      "static int n; if (i == 0 && !n++) for (int k = 0; k < 700; ++k) { volatile char* p = (volatile char*)malloc(1 "
      "<< "
      "20); p[0] = 1; } ";
  constexpr const char* kNeedsSome =
      "if (i == 0) { volatile char* p = (volatile char*)malloc(512 << 20); p[0] = 1; free((void*)p); } ";
  ReusedState state;
  const pid_t first = kept(batch_of(batch_id(1, 0, 0), absl::StrCat(kTakesMost, kAdd)), &state);
  ASSERT_GT(first, 0);
  const pid_t second = kept(batch_of(batch_id(1, 0, 8), absl::StrCat(kNeedsSome, kAdd)), &state);
  EXPECT_GT(second, 0);
  EXPECT_NE(second, first);
}

// A candidate that fails by its own fault costs one trial in a kept runner too.
TEST(ReusedRunner, FaultsAreFoundInOneThatIsKept) {
  ReusedState state;
  EXPECT_GT(kept(batch_of(batch_id(1, 0, 0)), &state), 0);
  MeasureOptions options = testing::options();
  options.state = &state;
  Batch batch = batch_of(batch_id(1, 0, 8), "abort();");
  batch.candidates.push_back(candidate(1, kAdd));
  const absl::StatusOr<Measured> measured = measure(batch, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->trials.size(), 2u);
  EXPECT_EQ(measured->trials[0].outcome, Outcome::kRuntimeError);
  EXPECT_EQ(measured->trials[1].outcome, Outcome::kCorrect) << measured->trials[1].message;
}

TEST(ReusedRunner, RestLeavesNothing) {
  MeasureOptions options = testing::options();
  const Scratch scratch;
  options.work_dir = scratch.path("");
  ReusedState state;
  EXPECT_GT(kept(batch_of(batch_id(1, 0, 0)), &state, options), 0);
  EXPECT_FALSE(std::filesystem::is_empty(options.work_dir));
  state.rest();
  EXPECT_FALSE(state.runner.running());
  EXPECT_TRUE(std::filesystem::is_empty(options.work_dir));
}

}  // namespace
}  // namespace wl

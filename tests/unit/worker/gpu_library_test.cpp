// Candidates that call a GPU library for products, on the fake drivers and the fake library of tests/fake_gpu/blas.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/base/matmul.h"
#include "tests/unit/worker/gpu_testing.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

// A coordinator may send any call of a library, so the worker checks the numbers that describe a call (MatmulCall)
// before it makes the call.
TEST(GpuLibraries, CallsAreJudged) {
  const testing::FakeGpu fake;
  MatmulCall call;
  call.a = call.b = call.d = {0, 0, 32, 32, 32, 0};
  call.b.argument = 1;
  call.d.argument = 2;
  Batch batch = testing::add_batch(1024);
  for (int64_t trial = 0; trial < 5; ++trial)
    batch.candidates.push_back(testing::gpu_candidate(trial, "cuda:sm_90a", testing::good_specimen()));
  for (size_t i = 0; i < 4; ++i) {
    Source& source = batch.candidates[i].source;
    source.library = "cublaslt";
    source.prelude.clear();
    source.text = matmul_text(call);
    source.grid = source.threads = 1;
    source.work_bytes = kCounterBytes + kMatmulWorkBytes;
  }
  batch.candidates[1].source.work_bytes = kCounterBytes;
  // A blank makes this text differ from that of candidate 0, since candidates with equal texts are compiled only once.
  batch.candidates[1].source.text.insert(1, " ");
  batch.candidates[2].source.text = "{}";
  call.d.argument = 3;
  batch.candidates[3].source.text = matmul_text(call);
  MeasureOptions options = testing::options();
  Device device;
  device.target = "cuda:sm_90a";
  options.gpus = {{"cuda:0", device}};
  const absl::StatusOr<Measured> run = measure(batch, options);
  ASSERT_TRUE(run.ok()) << run.status();
  const std::vector<Trial>& trials = run->trials;
  ASSERT_EQ(trials.size(), 5u);
  // The call computes a product, but the check of the batch expects a sum.
  EXPECT_EQ(trials[0].outcome, Outcome::kWrongResult) << trials[0].message;
  EXPECT_EQ(trials[1].outcome, Outcome::kRuntimeError);
  EXPECT_THAT(trials[1].message, HasSubstr("with a workspace of 4096 bytes; it needs 33558528"));
  EXPECT_EQ(trials[2].outcome, Outcome::kCompileError);
  EXPECT_THAT(trials[2].message, HasSubstr("the call of a library: it.matmul is not an integer"));
  EXPECT_EQ(trials[3].outcome, Outcome::kRuntimeError);
  EXPECT_THAT(trials[3].message, HasSubstr("has 3 arguments, but reads or writes one beyond them"));
  EXPECT_EQ(trials[4].outcome, Outcome::kCorrect) << trials[4].message;
}

}  // namespace
}  // namespace wl

// Chains of kernels are timed in turn in a child process, which a kernel may crash. Each kernel of a chain reads the
// values that the earlier ones have stored.
#include "worker/measure_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/worker/kernels.h"
#include "worker/compile.h"
#include "worker/device_runner.h"
#include "worker/private_folder.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::candidate;
using ::testing::HasSubstr;
using testing::kAdd;

constexpr int64_t kChainElements = 1024;

// Makes a batch with four kernels: 0 adds its inputs, 1 crashes, 2 does not compile, 3 writes nothing.
Batch chain_batch(std::vector<KernelChain> chains) {
  Batch batch = add_batch(kChainElements);
  batch.checks.clear();
  batch.recipe.interleave = true;
  const char* const bodies[] = {kAdd, "*(volatile int*)0 = 1;", "this is not C++", ""};
  for (const char* body : bodies) batch.candidates.push_back(candidate(10 + std::ssize(batch.candidates), body));
  batch.chains = std::move(chains);
  return batch;
}

Measured run_chains(const Batch& batch, bool fake = false) {
  MeasureOptions options = testing::options();
  options.fake = fake;
  absl::StatusOr<Measured> measured = measure(batch, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  return measured.ok() ? *std::move(measured) : Measured{};
}

const KernelChain kOnce = {0, "once", {}, {{0, {0, 1, 2}}}};
const KernelChain kTwice = {1, "twice", {kChainElements * 4}, {{0, {0, 1, 3}}, {0, {3, 1, 2}}}};

// If warploom-runner is not installed, its path is empty, and starting it is an error.
TEST(Runner, ThatIsMissingIsAnError) {
  const auto runner = Runner::start({"", "compile", nullptr, nullptr, Sandbox::kBubblewrap});
  EXPECT_EQ(runner.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(runner.status().message()), HasSubstr("warploom-runner is missing"));
}

TEST(MeasureChains, EveryChainIsTimed) {
  const Measured measured = run_chains(chain_batch({kOnce, kTwice}));
  ASSERT_EQ(measured.trials.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(measured.trials[i].outcome, Outcome::kCorrect) << measured.trials[i].message;
    EXPECT_EQ(measured.trials[i].trial, static_cast<int64_t>(i));
    EXPECT_EQ(measured.trials[i].plan, i == 0 ? "once" : "twice");
    EXPECT_GE(measured.trials[i].samples_ns.size(), 5u);
  }
}

TEST(MeasureChains, AFailureCostsItsChainAlone) {
  const Measured measured = run_chains(chain_batch({{0, "crashes", {}, {{0, {0, 1, 2}}, {1, {0, 1, 2}}}},
                                                    kTwice,
                                                    {2, "does not compile", {}, {{2, {0, 1, 2}}}},
                                                    {3, "writes nothing", {}, {{3, {0, 1, 2}}}},
                                                    {4, "writes its input", {}, {{0, {2, 1, 0}}}},
                                                    {5, "writes no output", {kChainElements * 4}, {{0, {0, 1, 3}}}}}));
  ASSERT_EQ(measured.trials.size(), 6u);
  EXPECT_THAT(measured.trials[0].message, HasSubstr("SEGV"));
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kRuntimeError);
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kCorrect) << measured.trials[1].message;
  EXPECT_EQ(measured.trials[2].outcome, Outcome::kCompileError);
  EXPECT_THAT(measured.trials[3].message, HasSubstr("1024 elements of an output were never written"));
  EXPECT_THAT(measured.trials[4].message, HasSubstr("argument 0"));
  EXPECT_THAT(measured.trials[5].message, HasSubstr("never written"));
}

TEST(MeasureChains, WhatWritesBeyondTheIntermediatesIsFound) {
  const Measured measured = run_chains(chain_batch({{0, "short", {1024}, {{0, {0, 1, 3}}, {0, {3, 1, 2}}}}, kOnce}));
  ASSERT_EQ(measured.trials.size(), 2u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kRuntimeError);
  EXPECT_THAT(measured.trials[0].message, HasSubstr("the intermediates"));
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kCorrect) << measured.trials[1].message;
}

TEST(MeasureChains, BuffersThatDoNotFitFailTheChainsAndNotTheWorker) {
  const Measured measured =
      run_chains(chain_batch({kOnce, {1, "huge", {int64_t{1} << 45}, {{0, {0, 1, 3}}, {0, {3, 1, 2}}}}}));
  ASSERT_EQ(measured.trials.size(), 2u);
  for (const Trial& trial : measured.trials) {
    EXPECT_EQ(trial.outcome, Outcome::kRuntimeError);
    EXPECT_THAT(trial.message, HasSubstr("MiB"));
  }
}

TEST(MeasureChains, FakeTimesAreTheSumsOfTheKernels) {
  const Batch batch = chain_batch({kOnce, kTwice});
  const Measured measured = run_chains(batch, /*fake=*/true);
  ASSERT_EQ(measured.trials.size(), 2u);
  ASSERT_EQ(measured.trials[0].samples_ns.size(), measured.trials[1].samples_ns.size());
  for (size_t i = 0; i < measured.trials[0].samples_ns.size(); ++i)
    EXPECT_EQ(measured.trials[1].samples_ns[i], 2 * measured.trials[0].samples_ns[i]);
}

// Tests warploom-runner without the worker: the runner passes values from one kernel of a chain to the next, and
// refuses invalid commands.
class ChainRunner : public ::testing::Test {
 protected:
  void SetUp() override {
    const MeasureOptions options = testing::options();
    auto folder = PrivateFolder::make(options.work_dir);
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
    batch_ = chain_batch({kTwice});
    batch_.candidates.resize(1);
    auto compiled = compile_batch(batch_, options, folder_->path(), [](int) {});
    ASSERT_TRUE(compiled.ok() && (*compiled)[0].outcome == Outcome::kCorrect);
    auto runner = Runner::start({options.runner, "cpu", nullptr, nullptr, Sandbox::kNone, {folder_->path()}, {}});
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    SetupCommand setup = setup_of(batch_);
    setup.seed = 1;
    setup.arena_bytes = 8192;
    ASSERT_TRUE(runner_.setup(setup, deadline()).ok());
    const Source& source = batch_.candidates[0].source;
    LoadCommand load{0, (*compiled)[0].object, source.entry, source.grid, source.threads, 0, 1, 0};
    ASSERT_TRUE(runner_.load(load, deadline()).ok());
  }
  static int64_t deadline() { return monotonic_ns() + 20'000'000'000; }

  std::optional<PrivateFolder> folder_;
  Batch batch_;
  Runner runner_;
};

TEST_F(ChainRunner, ValuesGoFromStepToStep) {
  const ChainCommand twice{7, {{0, {{0, 0}, {1, 0}, {-1, 128}}}, {0, {{-1, 128}, {1, 0}, {2, 0}}}}};
  ASSERT_TRUE(runner_.assemble(twice, deadline()).ok());
  const auto checked = runner_.check({7, true}, deadline());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->damage, "");
  const auto values = runner_.peek({{{0, 77}, {1, 77}, {2, 77}}}, deadline());
  ASSERT_TRUE(values.ok());
  EXPECT_NEAR(values->values[2], values->values[0] + 2 * values->values[1], 1e-5);
}

TEST_F(ChainRunner, RefusesWhatDoesNotExist) {
  const std::vector<ChainCommand> wrong = {
      {7, {}},
      {7, {{5, {{0, 0}, {1, 0}, {2, 0}}}}},  // no such kernel
      {7, {{0, {{0, 0}, {1, 0}, {3, 0}}}}},  // no such buffer
      // The third argument (buffer -1: the arena, 8192 bytes for intermediate values) lies behind or before the arena.
      {7, {{0, {{0, 0}, {1, 0}, {-1, 8192}}}}},
      {7, {{0, {{0, 0}, {1, 0}, {-1, -64}}}}},
      {7, {{0, {{0, 64}, {1, 0}, {2, 0}}}}},  // not the start of a buffer
      {7, {{0, std::vector<ChainCommand::Argument>(4097, {0, 0})}}},
  };
  for (const ChainCommand& command : wrong)
    EXPECT_EQ(runner_.assemble(command, deadline()).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(runner_.assemble({7, {{0, {{0, 0}, {1, 0}, {2, 0}}}}}, deadline()).ok());
  EXPECT_FALSE(runner_.assemble({8, {{7, {{0, 0}, {1, 0}, {2, 0}}}}}, deadline()).ok()) << "a chain is no kernel";
}

}  // namespace
}  // namespace wl

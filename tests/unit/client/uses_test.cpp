// What a process runs is counted, and a coordinator is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

#include "client/fetch/client.h"
#include "client/program/bundle.h"
#include "client/program/executor.h"
#include "client/program/model.h"
#include "tests/unit/client/programs.h"

namespace wl {
namespace {

const std::string kKey(64, 'a');

class Uses : public ProgramsTest {
 protected:
  void SetUp() override {
    program_ = program_of("y[i] = x[i] + w[i];");
    if (program_.steps.empty()) GTEST_SKIP() << "no C compiler on this machine";
    program_.kernels[0].key = kKey;
  }
  // Returns the options of a client whose coordinator has the program, and remembers what it is told.
  ClientOptions options() {
    ClientOptions options;
    options.cache.folder = root_ + "/cache";
    options.ask = [this](const BundleRequest&, const std::string& folder, const std::stop_token&) {
      return write_bundle(folder, program_, "{}");
    };
    options.tell = [this](const std::vector<KernelUse>& uses, std::chrono::milliseconds, const std::stop_token&) {
      told_.insert(told_.end(), uses.begin(), uses.end());
      return absl::OkStatus();
    };
    return options;
  }

  Program program_;
  std::vector<KernelUse> told_;
};

TEST_F(Uses, RunsAreCountedAndSomeAreTimed) {
  program_.meter = std::make_shared<UseMeter>(program_);
  auto executor = Executor::create(program_, {.pin = false});
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE(program_.meter->take().empty());
  for (int i = 0; i < 2 * UseMeter::kSampleEvery; ++i) ASSERT_TRUE(executor->run().ok());
  const std::vector<KernelUse> uses = program_.meter->take();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].key, kKey);
  EXPECT_EQ(uses[0].calls, 4 * UseMeter::kSampleEvery) << "the program launches its kernel twice";
  EXPECT_GT(uses[0].ns, 0);
  EXPECT_TRUE(program_.meter->take().empty()) << "each run is taken once";
  ASSERT_TRUE(executor->run().ok());
  EXPECT_EQ(program_.meter->take().at(0).calls, 2);
}

TEST_F(Uses, TimesAreInProportionToAllRuns) {
  UseMeter meter(program_);
  int timed = 0;
  for (int run = 0; run < 3 * UseMeter::kSampleEvery; ++run) {
    if (!meter.begin_run()) continue;
    ++timed;
    meter.add({2000});
  }
  EXPECT_EQ(timed, 3);
  EXPECT_EQ(meter.take().at(0), (KernelUse{kKey, 6 * UseMeter::kSampleEvery, 6000 * UseMeter::kSampleEvery}));
}

TEST_F(Uses, AClientTellsItsCoordinator) {
  BundleRequest request;
  request.graph = root_ + "/g.graph";
  ASSERT_TRUE(write_file(request.graph, program_.graph_text).ok());
  const auto run = [&](ClientOptions given) {
    Client client(std::move(given));
    const auto found = client.load(request, {});
    ASSERT_TRUE(found.ok()) << found.status();
    auto model = Model::of(found->bundle);
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_TRUE(model->generate_weights(1).ok());
    const TensorInfo input = model->inputs().at(0);
    const Array x{input.dtype, input.shape,
                  std::string(sizeof(float) * static_cast<size_t>(elements(input.shape)), '\0')};
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(model->run({{"x", x}}).ok());
  };
  run(options());
  ASSERT_EQ(told_.size(), 1u) << "at the latest when the client ends";
  EXPECT_EQ(told_[0].key, kKey);
  EXPECT_EQ(told_[0].calls, 6);
  EXPECT_GT(told_[0].ns, 0);
  ClientOptions silent = options();
  silent.tell = nullptr;
  run(std::move(silent));
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(Uses, LaterTimesCountForLaterRuns) {
  UseMeter meter(program_);
  EXPECT_FALSE(meter.begin_run()) << "the first run wakes threads";
  EXPECT_EQ(meter.take().at(0), (KernelUse{kKey, 2, 0}));
  EXPECT_TRUE(meter.begin_run());
  meter.add({5000});
  EXPECT_EQ(meter.take().at(0), (KernelUse{kKey, 2, 5000}));
  meter.begin_run();
  EXPECT_EQ(meter.take().at(0), (KernelUse{kKey, 2, 5000})) << "no run was timed since";
  meter.begin_run();
  meter.add({1000});
  EXPECT_EQ(meter.take().at(0), (KernelUse{kKey, 2, 1000}));
}

// Calls UseReporter::Tell until it was called this often, with a meter that counts a run before each call.
std::vector<std::vector<KernelUse>> told(const Program& program, size_t calls,
                                         const std::function<absl::Status(size_t call)>& answer) {
  std::vector<std::vector<KernelUse>> all;
  std::atomic<size_t> done = 0;
  const auto meter = std::make_shared<UseMeter>(program);
  const auto tell = [&](const std::vector<KernelUse>& uses, std::chrono::milliseconds, const std::stop_token&) {
    all.push_back(uses);
    meter->begin_run();
    ++done;
    return answer(all.size());
  };
  meter->begin_run();
  {
    UseReporter reporter(tell, std::chrono::milliseconds(1));
    reporter.add(meter);
    while (done < calls) std::this_thread::yield();
  }
  return all;
}

TEST_F(Uses, WhatCannotBeToldIsToldLater) {
  const auto all =
      told(program_, 3, [](size_t call) { return call < 3 ? absl::UnavailableError("away") : absl::OkStatus(); });
  ASSERT_GE(all.size(), 3u);
  EXPECT_EQ(all[0].at(0).calls, 2);
  EXPECT_EQ(all[1].at(0).calls, 4);
  EXPECT_EQ(all[2].at(0).calls, 6);
}

// A call that may have been counted is not repeated, and sums stay within what the coordinator takes.
TEST_F(Uses, WhatMayHaveArrivedIsNotToldAgain) {
  const auto all = told(program_, 2, [](size_t) { return absl::DeadlineExceededError("slow"); });
  EXPECT_EQ(all[1].at(0).calls, 2);
}

TEST_F(Uses, AnExceptionEndsNothing) {
  const auto all = told(program_, 2, [](size_t call) -> absl::Status {
    if (call == 1) throw std::bad_alloc();
    return absl::OkStatus();
  });
  EXPECT_GE(all.size(), 2u);
}

// A process that a fork made has no thread of its parent's. It reports its own programs, and ends.
TEST_F(Uses, AForkedProcessReportsOnItsOwn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // The child of the address sanitizer may inherit a lock of its allocator that a thread of the parent held.
  GTEST_SKIP() << "the sanitizers allow no thread after a fork of a process with threads";
#endif
  const auto meter = std::make_shared<UseMeter>(program_);
  std::atomic<int> calls = 0;
  auto* const reporter = new UseReporter(
      [&](const std::vector<KernelUse>&, std::chrono::milliseconds, const std::stop_token&) {
        ++calls;
        return absl::OkStatus();
      },
      std::chrono::hours(1));
  reporter->add(meter);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = std::make_shared<UseMeter>(program_);
    own->begin_run();
    reporter->add(own);
    delete reporter;
    ::_exit(calls == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  delete reporter;
  EXPECT_EQ(calls, 0) << "the parent ran nothing";
}

TEST_F(Uses, ACoordinatorThatRefusesIsNotToldAgain) {
  const auto all = told(program_, 1, [](size_t) { return absl::UnimplementedError("an older one"); });
  EXPECT_EQ(all.size(), 1u);
}

}  // namespace
}  // namespace wl

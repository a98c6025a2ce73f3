#include "worker/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/kernels.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::candidate;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kAdd;
using ::testing::Not;

constexpr int64_t kElements = 1024;  // number of elements of each input and output; 16 blocks of 64 elements

Measured run(const Batch& batch, const MeasureOptions& options = testing::options()) {
  absl::StatusOr<Measured> measured = measure(batch, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  // All child processes have ended and have been waited for.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  return measured.ok() ? *std::move(measured) : Measured{};
}

TEST(Measure, RightKernelsAreTimed) {
  Batch batch = add_batch(kElements);
  batch.recipe.hopeless_factor = 1e9;  // timing never ends early because a busy machine makes a kernel slow
  for (int t = 0; t < 3; ++t) batch.candidates.push_back(candidate(t, absl::StrCat("// ", t, "\n", kAdd)));
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 3u);
  for (int t = 0; t < 3; ++t) {
    const Trial& trial = measured.trials[static_cast<size_t>(t)];
    EXPECT_EQ(trial.outcome, Outcome::kCorrect) << trial.message;
    EXPECT_EQ(trial.trial, t);
    EXPECT_EQ(trial.plan, absl::StrCat("plan ", t));
    EXPECT_GE(trial.samples_ns.size(), 2u) << "a candidate that a busy machine makes slow has lost after two";
    for (int64_t ns : trial.samples_ns) EXPECT_GT(ns, 0);
    EXPECT_LE(trial.max_error, trial.bound);
    EXPECT_THAT(trial.object_sha256, IsEmpty());
  }
  EXPECT_FALSE(measured.cancelled);
  EXPECT_THAT(measured.objects, IsEmpty());
}

struct Fault {
  const char* name;
  const char* body;
  Outcome outcome;
  const char* message;
  const char* before = "";
};

#define WL_ADD "for (long k = i * 64; k < i * 64 + 64; ++k) c[k] = a[k] + b[k];"

const Fault kFaults[] = {
    {"WrongResult", "for (long k = i * 64; k < i * 64 + 64; ++k) c[k] = a[k] - b[k];", Outcome::kWrongResult, "c("},
    {"OneWrongElement", WL_ADD " if (i == 3) c[i * 64 + 4] += 1;", Outcome::kWrongResult, "c(3, 4): expected"},
    {"Nan", WL_ADD " if (i == 3) c[i * 64 + 4] = __builtin_nanf(\"\");", Outcome::kWrongResult, "c(3, 4)"},
    {"UnwrittenElement", "for (long k = i * 64; k < i * 64 + 64; ++k) if (k != 65) c[k] = a[k] + b[k];",
     Outcome::kWrongResult, "c(1, 1) and 0 more of 1024 elements were never written"},
    {"CompileError", "this is not C++", Outcome::kCompileError, "error"},
    {"LinkError", "$missing();", Outcome::kCompileError, "undefined", "void $missing();"},
    {"InfiniteLoop", "for (;;) asm volatile(\"\");", Outcome::kTimeout, "deadline"},
    {"Sleep", "sleep(1000);", Outcome::kTimeout, "deadline"},
    {"StopsItself", "raise(19 /* SIGSTOP */);", Outcome::kTimeout, "stopped by a signal",
     "extern \"C\" int raise(int);"},
    {"Segv", "*(volatile int*)8 = 1;", Outcome::kRuntimeError, "SIGSEGV"},
    {"Abort", "abort();", Outcome::kRuntimeError, "SIGABRT"},
    {"Trap", "__builtin_trap();", Outcome::kRuntimeError, "SIGILL"},
    {"EarlyExit", "_exit(0);", Outcome::kRuntimeError, "exited with status 0"},
    {"EarlyExit3", "_exit(3);", Outcome::kRuntimeError, "exited with status 3"},
    {"PastTheEnd", WL_ADD " if (i == 15) ((volatile float*)c)[1024] = 0;", Outcome::kRuntimeError,
     "argument 2 (c): byte 4096 was written; it has 4096 bytes"},
    {"BeforeTheBegin", WL_ADD " if (i == 0) ((volatile float*)c)[-1] = 0;", Outcome::kRuntimeError,
     "argument 2 (c): wrote 4 bytes before its begin"},
    {"FarPastTheEnd", WL_ADD " ((volatile float*)c)[1024 + 2048] = 0;", Outcome::kRuntimeError,
     "argument 2 (c, output"},
    {"WritesAnInput", WL_ADD " ((volatile float*)a)[5] = 0;", Outcome::kRuntimeError,
     "byte 20 of argument 0 (a, read-only"},
    {"StackOverflow", "c[0] = $deep(1000000000);", Outcome::kRuntimeError, "SIGSEGV",
     "__attribute__((noinline)) int $deep(int n) { volatile char x[4096]; x[n & 4095] = 1; return n ? $deep(n - 1) + "
     "x[n & 1] : 0; }"},
    {"ClosesItsChannel", "close(3); sleep(1000);", Outcome::kRuntimeError, "closed its channel"},
    {"WritesJunk", "write(3, \"\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\", 9); sleep(1000);",
     Outcome::kRuntimeError, "junk"},
    {"RightOnlyOnce", "static int n; if (i == 0) ++n; " WL_ADD " if (n > 1) c[i * 64] += 1;", Outcome::kWrongResult,
     "c("},
    {"CrashesOnlyLater", "static int n; if (i == 0) ++n; " WL_ADD " if (n > 20) abort();", Outcome::kRuntimeError,
     "SIGABRT"},
    {"DoubleFree", "static char* volatile p; p = (char*)malloc(40000); free(p); free(p);", Outcome::kRuntimeError, ""},
    {"AllocatesForEver", "for (;;) { volatile char* p = (volatile char*)malloc(1 << 26); p[0] = 1; }",
     Outcome::kRuntimeError, "SIGSEGV"},
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(Measure, EachFaultIsOneFailedTrialOfItsClass) {
  Batch batch = add_batch(kElements);
  batch.recipe.deadline_ns = 1'500'000'000;
  for (const Fault& fault : kFaults) {
    // Sanitizers' allocators tolerate the last two faults: a double free, and allocations without end.
    if (kSanitized && std::string(fault.name) == "DoubleFree") break;
    const auto n = static_cast<int64_t>(batch.candidates.size());
    batch.candidates.push_back(candidate(n, fault.body, fault.before));
    batch.candidates.push_back(candidate(n + 1, kAdd));
  }
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), batch.candidates.size());
  for (size_t f = 0; 2 * f < measured.trials.size(); ++f) {
    SCOPED_TRACE(kFaults[f].name);
    const Trial& faulty = measured.trials[2 * f];
    EXPECT_EQ(faulty.outcome, kFaults[f].outcome) << faulty.message;
    EXPECT_THAT(faulty.message, HasSubstr(kFaults[f].message));
    EXPECT_THAT(faulty.samples_ns, IsEmpty());
    const Trial& next = measured.trials[2 * f + 1];
    EXPECT_EQ(next.outcome, Outcome::kCorrect) << next.message;
  }
}

TEST(Measure, FloodOnStdoutHarmsNobody) {
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, absl::StrCat("if (i == 0) { static char x[1 << 20]; memset(x, 'x', sizeof x); "
                                                "static int n; if (n++ == 0) for (int k = 0; k < 100; ++k) "
                                                "write(1, x, sizeof x); }",
                                                kAdd)),
                      candidate(1, kAdd)};
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 2u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kCorrect) << measured.trials[1].message;
}

TEST(Measure, ForkingIsRefusedAndLeavesNothingBehind) {
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, absl::StrCat("if (i == 0 && fork() == 0) { sleep(1000); _exit(0); }", kAdd)),
                      candidate(1, "if (fork() < 0) abort(); sleep(1000);"), candidate(2, kAdd)};
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 3u);
  // The call of fork() failed in candidate 0, so the rest of the candidate ran as a correct kernel.
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kRuntimeError) << measured.trials[1].message;
  EXPECT_EQ(measured.trials[2].outcome, Outcome::kCorrect) << measured.trials[2].message;
}

TEST(Measure, MultiThreadedKernelsRunEveryBlock) {
  Batch batch = add_batch(64 * 1024, 11);
  batch.candidates = {candidate(0, kAdd)};
  batch.candidates[0].source.grid = 1024;
  batch.candidates[0].source.threads = 2;
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
}

TEST(Measure, ColdRunsRotateTheirData) {
  Batch batch = add_batch(kElements);
  batch.recipe.cold = true;
  batch.candidates = {candidate(0, kAdd)};
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
}

// For cold runs, inputs and outputs exist in several copies, which calls use in turn. A candidate's first call uses the
// copy after the last one of the previous candidate. Each candidate must be judged by the copies that it has written.
TEST(Measure, ColdRunsOfManyCandidatesAreAllJudgedByWhatTheyWrote) {
  Batch batch = add_batch(kElements);
  batch.recipe.cold = true;
  // ns; so small a budget that each candidate makes only a few calls and does not use all copies
  batch.recipe.budget_ns = 1;
  const std::string slow = absl::StrCat("if (i == 0) for (volatile int n = 0; n < 100000; ++n) {}", kAdd);
  for (int i = 0; i < 6; ++i) batch.candidates.push_back(candidate(i, slow));
  batch.candidates.push_back(candidate(6, absl::StrCat("if (i != 3) ", kAdd)));
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 7u);
  for (const Trial& trial : measured.trials)
    EXPECT_EQ(trial.outcome, trial.trial == 6 ? Outcome::kWrongResult : Outcome::kCorrect) << trial.message;
}

TEST(Measure, EmptyTensorsAndEmptyGridsSimplyWork) {
  Batch batch = add_batch(0);
  batch.candidates = {candidate(0, kAdd)};
  batch.candidates[0].source.grid = 0;
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
}

// Outputs are filled with a poison byte before a run, so that unwritten bytes are found. A kernel that writes this
// byte as its result is correct all the same.
TEST(Measure, IntegerPoisonIsDistinguishedFromResults) {
  for (bool writes : {true, false}) {
    Batch batch = add_batch(kElements);
    batch.problem.buffers[2].dtype = DType::u8;
    for (Check& check : batch.checks) check.samples = {{2, 0, 0xa5, 0}};
    batch.candidates = {candidate(
        0, writes ? "memset((char*)c + i * 64, 0xa5, 64);" : "if (i != 3) memset((char*)c + i * 64, 0xa5, 64);")};
    const Measured measured = run(batch);
    ASSERT_EQ(measured.trials.size(), 1u);
    EXPECT_EQ(measured.trials[0].outcome, writes ? Outcome::kCorrect : Outcome::kWrongResult);
    EXPECT_THAT(measured.trials[0].message, HasSubstr(writes ? "" : "c(3, 0) and 63 more"));
  }
}

// A kernel that leaves every sixteenth page of its output unwritten is rejected, even if none of the values that are
// compared lies in such a page.
TEST(Measure, RegularGapsInLargeOutputsAreFound) {
  constexpr int64_t kLarge = int64_t{5} << 20;
  Batch batch = add_batch(kLarge, kLarge);
  batch.candidates = {candidate(0, absl::StrCat("if ((i / 16) % 16 != 5) ", kAdd))};
  batch.candidates[0].source.grid = kLarge / 64;
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kWrongResult);
  EXPECT_THAT(measured.trials[0].message, HasSubstr("were never written"));
}

TEST(Measure, HopelessOnesStopEarly) {
  Batch batch = add_batch(kElements);
  batch.recipe.min_repeats = 10;
  batch.recipe.best_ns = 1;
  batch.candidates = {candidate(0, kAdd)};
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_TRUE(measured.trials[0].hopeless);
  EXPECT_EQ(measured.trials[0].samples_ns.size(), 2u);
}

TEST(Measure, RoundsCheckAllSeedsAndKeepObjects) {
  Batch batch = add_batch(kElements);
  batch.recipe.interleave = true;
  batch.keep_objects = true;
  const float wrong_on_second = static_cast<float>(batch.checks[1].samples[0].expected);
  batch.candidates = {
      candidate(0, kAdd),
      candidate(1,
                absl::StrCat(kAdd, " if (i == 0 && c[0] == ", absl::StrFormat("%af", wrong_on_second), ") c[0] = 0;")),
      candidate(2, "static int n; if (i == 0) ++n; " WL_ADD " if (n > 10) for (;;) asm volatile(\"\");"),
      candidate(3, absl::StrCat("/**/", kAdd))};
  batch.recipe.deadline_ns = 300'000'000;
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 4u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect) << measured.trials[0].message;
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kWrongResult) << measured.trials[1].message;
  EXPECT_EQ(measured.trials[2].outcome, Outcome::kTimeout) << measured.trials[2].message;
  EXPECT_EQ(measured.trials[3].outcome, Outcome::kCorrect) << measured.trials[3].message;
  EXPECT_EQ(measured.objects.size(), 2u);
  EXPECT_EQ(measured.trials[0].object_sha256.size(), 64u);
  EXPECT_EQ(measured.trials[0].samples_ns.size(), measured.trials[3].samples_ns.size());
  // The bytes of a kernel's object do not depend on the folder or on the kernels that are compiled with it.
  batch.candidates = {batch.candidates[0]};
  batch.recipe.deadline_ns = Recipe().deadline_ns;
  const Measured again = run(batch);
  ASSERT_EQ(again.trials.size(), 1u);
  EXPECT_EQ(again.trials[0].object_sha256, measured.trials[0].object_sha256);
}

TEST(Measure, WhatThisMachineCannotDoIsRejected) {
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, kAdd), candidate(1, kAdd), candidate(2, kAdd)};
  batch.candidates[0].source.target = "cpu:vax";
  batch.candidates[1].source.compiler = "bcc";
  const Measured measured = run(batch);
  ASSERT_EQ(measured.trials.size(), 3u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kRejected);
  EXPECT_THAT(measured.trials[0].message, HasSubstr("cpu:vax"));
  EXPECT_EQ(measured.trials[1].outcome, Outcome::kRejected);
  EXPECT_EQ(measured.trials[2].outcome, Outcome::kCorrect);
}

TEST(Measure, FakeTimesAreAFunctionOfTheSource) {
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, kAdd), candidate(1, absl::StrCat("//\n", kAdd)), candidate(2, "c[0] = 1;")};
  MeasureOptions options = testing::options();
  options.fake = true;
  const Measured once = run(batch, options), twice = run(batch, options);
  ASSERT_EQ(once.trials.size(), 3u);
  for (size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(once.trials[t].samples_ns, twice.trials[t].samples_ns);
    EXPECT_THAT(once.trials[t].samples_ns, Not(IsEmpty()));
  }
  EXPECT_NE(once.trials[0].samples_ns, once.trials[1].samples_ns);
  EXPECT_EQ(once.trials[2].outcome, Outcome::kWrongResult);
}

TEST(Measure, CancelStopsSoonAndKeepsWhatIsJudged) {
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, kAdd), candidate(1, "sleep(1000);")};
  batch.recipe.deadline_ns = 1'000'000'000'000;
  std::atomic<bool> cancel{false};
  MeasureOptions options = testing::options();
  options.cancel = &cancel;
  // The second candidate never ends, so the last report of progress is about the first one.
  std::atomic<bool> judged{false};
  options.progress = [&](const Progress& progress) {
    if (progress.done == 0 || progress.phase == "compile") return;
    judged = true;
    judged.notify_all();
  };
  std::thread canceller([&] {
    judged.wait(false);
    cancel = true;
  });
  const Measured measured = run(batch, options);
  canceller.join();
  EXPECT_TRUE(measured.cancelled);
  ASSERT_EQ(measured.trials.size(), 1u);
  EXPECT_EQ(measured.trials[0].outcome, Outcome::kCorrect);
}

// Returns the process ids of the runners that are children of this thread, or of the single-threaded process `parent`.
std::vector<pid_t> runners(const std::string& parent = "/proc/thread-self") {
  std::ifstream children(absl::StrCat(parent, "/children"));
  std::vector<pid_t> found;
  for (pid_t pid = 0; children >> pid;) {
    std::string name;
    std::ifstream(absl::StrCat("/proc/", pid, "/comm")) >> name;
    if (std::string_view("warploom-runner").starts_with(name)) found.push_back(pid);
    for (pid_t inner : runners(absl::StrCat("/proc/", pid, "/task/", pid))) found.push_back(inner);
  }
  return found;
}

TEST(Measure, AStoppedRunnerIsReplacedAndNobodyIsBlamed) {
  struct Case {
    bool promotion;
    const char* phase;
  };
  for (const Case& one : {Case{false, "measure"}, Case{true, "check"}, Case{true, "measure"}}) {
    SCOPED_TRACE(absl::StrCat(one.phase, one.promotion ? " of a promotion" : ""));
    Batch batch = add_batch(kElements);
    batch.recipe.interleave = one.promotion;
    batch.recipe.deadline_ns = 5'000'000'000;
    batch.candidates = {candidate(0, kAdd), candidate(1, absl::StrCat("// 1\n", kAdd))};
    MeasureOptions options = testing::options();
    int stopped = 0;
    // The progress callback is called while the runner executes a command.
    options.progress = [&](const Progress& progress) {
      if (stopped > 0 || progress.phase != one.phase) return;
      for (pid_t pid : runners()) stopped += kill(pid, SIGSTOP) == 0;
    };
    const Measured measured = run(batch, options);
    EXPECT_EQ(stopped, 1);
    ASSERT_EQ(measured.trials.size(), 2u);
    for (const Trial& trial : measured.trials) EXPECT_EQ(trial.outcome, Outcome::kCorrect) << trial.message;
  }
}

TEST(Measure, ABrokenWorkerIsNoFaultOfTheCandidate) {
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, kAdd)};
  MeasureOptions options = testing::options();
  options.runner = "/nonexistent/warploom-runner";
  EXPECT_EQ(measure(batch, options).status().code(), absl::StatusCode::kUnavailable);
  options = testing::options();
  options.work_dir = "/nonexistent";
  EXPECT_EQ(measure(batch, options).status().code(), absl::StatusCode::kUnavailable);
  options = testing::options();
  batch.problem.buffers[0].shape = {int64_t{1} << 44};
  EXPECT_FALSE(measure(batch, options).ok());
}

TEST(Measure, LeavesNothingInItsFolder) {
  MeasureOptions options = testing::options();
  const Scratch scratch;
  options.work_dir = scratch.path("");
  Batch batch = add_batch(kElements);
  batch.candidates = {candidate(0, kAdd), candidate(1, "abort();")};
  run(batch, options);
  EXPECT_TRUE(std::filesystem::is_empty(options.work_dir));
}

}  // namespace
}  // namespace wl

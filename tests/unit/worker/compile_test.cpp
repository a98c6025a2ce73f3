#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/object.h"
#include "tests/unit/file_text.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/kernels.h"
#include "worker/drivers/bubblewrap.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/drivers/process.h"

namespace wl {
namespace {

using testing::candidate;
using ::testing::HasSubstr;
using testing::kAdd;

TEST(Compile, ABadCandidateIsTheOnlyError) {
  std::vector<Candidate> candidates;
  for (int t = 0; t < 6; ++t) candidates.push_back(candidate(t, t == 3 ? "int x = $nowhere;" : kAdd));
  CompileOptions options;
  const Scratch scratch;
  options.folder = scratch.path("");
  const auto compiled = compile_cpu(candidates, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t t = 0; t < 6; ++t) {
    const Compiled& one = (*compiled)[t];
    EXPECT_EQ(one.outcome, t == 3 ? Outcome::kCompileError : Outcome::kCorrect) << one.message;
    EXPECT_THAT(one.message, HasSubstr(t == 3 ? "kernel:" : ""));
    EXPECT_THAT(one.message, HasSubstr(t == 3 ? "nowhere" : ""));
  }
}

TEST(Compile, SharesUnitsAndEqualSources) {
  std::vector<Candidate> candidates;
  for (int t = 0; t < 12; ++t) candidates.push_back(candidate(t % 10, kAdd));
  CompileOptions options;
  const Scratch scratch;
  options.folder = scratch.path("");
  options.unit = 5;
  const auto compiled = compile_cpu(candidates, options);
  ASSERT_TRUE(compiled.ok());
  std::set<std::string> objects;
  for (const Compiled& one : *compiled) objects.insert(one.object);
  EXPECT_EQ(objects.size(), 2u);
  EXPECT_EQ((*compiled)[10].object, (*compiled)[0].object);
  EXPECT_EQ((*compiled)[10].seconds, 0);
}

// Two translation units are compiled at the same time, and the longer one decides how long that takes. So a candidate
// with a long text is alone in its unit, as far as the limit of candidates in a unit allows.
TEST(Compile, UnitsHaveTextsOfAboutEqualLength) {
  std::vector<Candidate> candidates = {candidate(0, absl::StrCat(kAdd, "//", std::string(10'000, 'x'), "\n"))};
  for (int t = 1; t < 6; ++t) candidates.push_back(candidate(t, kAdd));
  // `most`: the limit of candidates in a unit. `beside`: how many short candidates share the long one's unit.
  for (const auto& [most, beside] : {std::pair{8, 0}, std::pair{4, 1}}) {
    CompileOptions options;
    const Scratch scratch;
    options.folder = scratch.path("");
    options.jobs = 2;
    options.unit = most;
    const auto compiled = compile_cpu(candidates, options);
    ASSERT_TRUE(compiled.ok());
    const auto with_the_long_one = std::count_if(compiled->begin() + 1, compiled->end(), [&](const Compiled& one) {
      return one.object == compiled->front().object;
    });
    EXPECT_EQ(with_the_long_one, beside);
  }
}

// A kernel whose code depends on __FILE__ and __LINE__ has the same object whatever folder, batch and position in the
// batch it is compiled in.
TEST(Compile, AnObjectThatIsKeptDependsOnItsSourceAlone) {
  const Candidate own =
      candidate(3, "c[0] = sizeof(__FILE__) + __LINE__;", "extern const char* $where() { return __FILE__; }\n");
  std::set<std::string> objects;
  for (const std::vector<int64_t>& before : {std::vector<int64_t>{}, {7, 8, 9}, {4}}) {
    std::vector<Candidate> candidates;
    for (int64_t trial : before) candidates.push_back(candidate(trial, kAdd));
    candidates.push_back(own);
    candidates.back().trial = 100 + static_cast<int64_t>(before.size());
    CompileOptions options;
    const Scratch scratch;
    options.folder = scratch.path("");
    options.unit = 1;
    const auto compiled = compile_cpu(candidates, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    ASSERT_EQ(compiled->back().outcome, Outcome::kCorrect) << compiled->back().message;
    objects.insert(testing::file_text(compiled->back().object));
  }
  EXPECT_EQ(objects.size(), 1u);
}

// Objects that need only libc and libm are linked by the linker alone. An object that needs the compiler's own library
// (here for a 128-bit division) is linked by the compiler driver.
TEST(Compile, LinksWithoutTheDriverWhereItCan) {
  std::vector<Candidate> candidates = {
      candidate(0, "c[0] = $fmod(a[0], b[0]); $memset(c, 0, i);",
                "double $fmod(double, double) __asm__(\"fmod\");\n"
                "extern \"C\" void* $memset(void*, int, unsigned long) __asm__(\"memset\");\n"),
      candidate(1, "c[0] = (float)((unsigned __int128)a[0] / (unsigned __int128)b[0]);"),
      candidate(2, "$missing();", "void $missing();\n")};
  for (const CpuCompiler& compiler : cpu_compilers()) {
    if (!program_runs(compiler.program)) continue;
    for (Candidate& one : candidates) one.source.compiler = compiler.name;
    CompileOptions options;
    const Scratch scratch;
    options.folder = scratch.path("");
    options.unit = 1;
    const auto compiled = compile_cpu(candidates, options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (size_t i : {0, 1}) {
      ASSERT_EQ((*compiled)[i].outcome, Outcome::kCorrect) << (*compiled)[i].message;
      const auto object = SharedObject::open((*compiled)[i].object);
      EXPECT_TRUE(object.ok()) << object.status();
    }
    const std::string text = testing::file_text((*compiled)[0].object);
    EXPECT_THAT(text, HasSubstr("libm.so"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("libstdc++")));
    EXPECT_EQ((*compiled)[2].outcome, Outcome::kCompileError);
    EXPECT_THAT((*compiled)[2].message, HasSubstr("undefined"));
  }
}

TEST(Compile, DeadlineIsATimeoutOfThatCandidate) {
  // A template recursion that keeps the compiler busy for much longer than the deadline.
  const char* slow =
      "template <int N, int M> struct $S { static constexpr long v = $S<N - 1, 2 * M>::v + $S<N - 1, 2 * M + 1>::v; "
      "};\n"
      "template <int M> struct $S<0, M> { static constexpr long v = M; };\n";
  std::vector<Candidate> candidates = {candidate(0, kAdd), candidate(1, "c[0] = $S<24, 1>::v;", slow)};
  CompileOptions options;
  const Scratch scratch;
  options.folder = scratch.path("");
  options.deadline_ns = 1'000'000'000;
  const auto compiled = compile_cpu(candidates, options);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ((*compiled)[1].outcome, Outcome::kTimeout) << (*compiled)[1].message;
}

TEST(Device, DescribesThisMachine) {
  const Device device = describe_device();
  EXPECT_THAT(device.target, HasSubstr("cpu:"));
  EXPECT_TRUE(cpu_runs(device.target));
  EXPECT_FALSE(cpu_runs("cpu:vax"));
  EXPECT_GE(device.threads, 1);
  EXPECT_GT(device.l1_bytes, 0);
  EXPECT_THAT(device.compilers, ::testing::Contains("gcc"));
  EXPECT_THAT(device.compiler_versions, HasSubstr("gcc="));
  EXPECT_THAT(device.compiler_versions, HasSubstr("GNU ld")) << "another linker makes other objects";
  for (const CpuCompiler& compiler : cpu_compilers()) {
    if (!program_runs(compiler.program)) continue;
    EXPECT_THAT(device.compiler_versions, HasSubstr("build " + build_digest(compiler))) << "as other flags do";
  }
  EXPECT_EQ(device.fingerprint(), describe_device().fingerprint());
}

Process shell(const std::string& script) {
  Process::Options options;
  options.arguments = {"/bin/sh", "-c", script};
  return std::move(Process::start(options)).value();
}

TEST(Process, SaysHowItEnded) {
  Drain drain(100);
  EXPECT_EQ(describe(shell("exit 7").wait(monotonic_ns() + 10'000'000'000, drain).value()), "exited with status 7");
  EXPECT_EQ(describe(shell("kill -SEGV $$").wait(monotonic_ns() + 10'000'000'000, drain).value()), "killed by SIGSEGV");
  Process::Options none;
  none.arguments = {"/nonexistent/program"};
  EXPECT_EQ(Process::start(none).status().code(), absl::StatusCode::kNotFound);
}

TEST(Process, KeepsTheBeginOfAFlood) {
  Drain drain(10);
  ASSERT_TRUE(shell("yes 0123456789 | head -c 3000000").wait(monotonic_ns() + 10'000'000'000, drain).ok());
  EXPECT_EQ(drain.text(), "0123456789");
}

TEST(Process, DeadlineThenKillLeavesNoGroupBehind) {
  Process process = shell("sleep 1000 & sleep 1000");
  const pid_t group = process.pid();
  Drain drain(10);
  EXPECT_EQ(process.wait(monotonic_ns() + 50'000'000, drain).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(process.kill().ok());
  EXPECT_FALSE(process.running());
  // All processes of the process group have been killed; init may take a moment to reap them.
  const int64_t until = monotonic_ns() + 5'000'000'000;
  while (::kill(-group, 0) == 0 && monotonic_ns() < until) sched_yield();
  EXPECT_EQ(::kill(-group, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// If bwrap is killed before it has completed a sandbox, processes of the sandbox must not survive, even those that have
// left bwrap's process group.
TEST(Process, KilledEarlyLeavesNoBoxBehind) {
  if (const absl::Status works = sandbox_works(); !works.ok()) GTEST_SKIP() << works;
  for (int i = 0; i < 20; ++i) {
    Process::Options options;
    options.arguments = {"/usr/bin/sleep", "30"};
    put_in({}, options);
    auto process = Process::start(options);
    ASSERT_TRUE(process.ok()) << process.status();
    const auto runs = [&] {
      pollfd poller{process->exit_fd(), POLLIN, 0};
      return poll(&poller, 1, 0) == 0;
    };
    pid_t box = 0;
    while (box == 0 && runs())
      std::ifstream(absl::StrCat("/proc/", process->pid(), "/task/", process->pid(), "/children")) >> box;
    ASSERT_NE(box, 0) << "bwrap has ended";
    while (getpgid(box) == process->pid()) sched_yield();
    const absl::StatusOr<Exit> exit = process->kill();
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(describe(*exit), "killed by SIGKILL");
  }
}

}  // namespace
}  // namespace wl

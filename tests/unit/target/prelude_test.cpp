// The CPU prelude: every compiler compiles it with a probe program for every vector width, and the test runs the probe.
#include "compiler/target/prelude/prelude.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/unit/fuzz.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* compiler;
  int lanes;
  const char* march;
  const char* name;
  bool always;  // whether short test runs include this case; the included cases cover both compilers and every width
};

bool machine_runs(const std::string& march) {
#if defined(__x86_64__)
  if (march == "x86-64-v4") return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (march == "x86-64-v3") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return march == "x86-64" || __builtin_cpu_supports("sse4.2");
#else
  return march == "native";
#endif
}

struct Output {
  int status;
  std::string text;
};
Output run(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string text;
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  return {pclose(pipe), text};
}

// Largest allowed error of each elementary function in units in the last place, over all f32 values
// (compiler/target/prelude/ACCURACY.md).
const std::map<std::string, double> kBounds = {{"exp", 1.25}, {"exp2", 1.25}, {"expm1", 1.75}, {"log", 1.25},
                                               {"log2", 3},   {"log1p", 1.3}, {"erf", 2.5},    {"tanh", 3},
                                               {"sin", 2.5},  {"cos", 2.5},   {"tan", 3.5},    {"sigmoid", 2.5},
                                               {"pow", 1.25}, {"sqrt", .5},   {"rcp", .5},     {"rsqrt", 1.5}};
// Largest allowed absolute error of some elementary functions for |x| < 1e4.
const std::map<std::string, double> kAbsoluteBounds = {{"sin", 1e-7}, {"cos", 1e-7}, {"erf", 1.2e-7}, {"tanh", 1.8e-7}};

class CpuPrelude : public ::testing::TestWithParam<Case> {};

TEST_P(CpuPrelude, KeepsItsPromises) {
  const Case& c = GetParam();
  if (testing::test_scale() < 1 && !c.always) GTEST_SKIP() << "part of the long run: WARPLOOM_TEST_SCALE=1";
  if (!machine_runs(c.march)) GTEST_SKIP() << "this machine does not run -march=" << c.march;
  if (run(std::string("command -v ") + c.compiler).status != 0) GTEST_SKIP() << "no " << c.compiler << " on the path";
  const Scratch scratch;
  const std::string source = scratch.path("probe.cpp"), program = scratch.path("probe");
  std::ofstream text(source);
  text << "#define WL_LANES " << c.lanes << "\n" << cpu_prelude();
  for (const char* half : {"prelude_probe.cc", "prelude_probe_memory.cc"}) {
    std::ifstream probe(fs::path(WARPLOOM_SOURCE_DIR "/tests/unit/target") / half);
    ASSERT_TRUE(probe) << half;
    text << probe.rdbuf();
  }
  text.close();

  Output compiled =
      run(std::string(c.compiler) + " -std=c++17" + (c.lanes > 4 ? " -O2" : " -O1") + " -march=" + c.march +
          " -Wall -Wextra -Werror -Wno-psabi -ffp-contract=fast -fno-math-errno -fno-trapping-math"
          " -fno-builtin-memcpy -fno-builtin-memset " +
          source + " -o " + program);
  ASSERT_EQ(compiled.status, 0) << compiled.text;
  Output ran = run(program + " 100003");
  ASSERT_TRUE(WIFEXITED(ran.status) && WEXITSTATUS(ran.status) == 0) << "status " << ran.status << "\n" << ran.text;

  std::istringstream lines(ran.text);
  size_t measured = 0;
  bool done = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name;
    double error = 0;
    words >> kind >> name >> error;
    if (kind == "done") {
      done = true;
    } else if (kind == "accuracy") {
      ASSERT_TRUE(kBounds.contains(name)) << line;
      EXPECT_LE(error, kBounds.at(name)) << line;
      ++measured;
    } else if (kind == "absolute") {
      auto bound = kAbsoluteBounds.find(name);
      if (bound == kAbsoluteBounds.end()) continue;
      EXPECT_LE(error, bound->second) << line;
    } else {
      ADD_FAILURE() << line;
    }
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(measured, kBounds.size());
}

INSTANTIATE_TEST_SUITE_P(Compilers, CpuPrelude,
                         ::testing::Values(Case{"g++", 16, "x86-64-v4", "gcc_avx512", true},
                                           Case{"g++", 8, "x86-64-v3", "gcc_avx2", false},
                                           Case{"g++", 4, "x86-64-v2", "gcc_sse4", true},
                                           Case{"g++", 1, "x86-64", "gcc_scalar", false},
                                           Case{"clang++", 16, "x86-64-v4", "clang_avx512", false},
                                           Case{"clang++", 8, "x86-64-v3", "clang_avx2", true},
                                           Case{"clang++", 4, "x86-64-v2", "clang_sse4", false},
                                           Case{"clang++", 1, "x86-64", "clang_scalar", true}),
                         [](const ::testing::TestParamInfo<Case>& parameter) { return parameter.param.name; });

TEST(CpuPreludeText, NeedsNoHeader) {
  EXPECT_THAT(std::string(cpu_prelude()), ::testing::Not(::testing::HasSubstr("#include")));
}

}  // namespace
}  // namespace wl

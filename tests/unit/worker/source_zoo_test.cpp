// Sources that attack the machine on which they are compiled. Each costs one candidate at most, no secret is read, no
// file or process is left behind, and the next candidate compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/unit/file_text.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/kernels.h"
#include "worker/drivers/cpu/cpu.h"
#include "worker/private_folder.h"

namespace wl {
namespace {

using testing::candidate;
using ::testing::HasSubstr;
using testing::kAdd;
using ::testing::Not;

constexpr char kSecret[] = "wl_secret_7319";
constexpr int64_t kDeadline = 3'000'000'000;
constexpr uintmax_t kMostBytes = 100 << 20;  // limit of bytes that an attack may leave on the disk until its batch ends

struct Attack {
  const char* name;
  // text before the kernel; SECRET stands for a file's path, PLUGIN for an object's, PARENT for this process's id
  const char* text;
  // Whether the kernel with the attack may compile: an attack that has no effect need not be an error.
  bool may_compile = false;
};

const Attack kAttacks[] = {
    {"IncludesASecret", "\n#include \"SECRET\"\n"},
    {"IncludesASecretAsANumber", "static const int $x =\n#include \"SECRET\"\n;"},
    {"IncbinsASecret", "asm(\".data\\n.incbin \\\"SECRET\\\"\\n.text\");"},
    {"AssemblesASecret", "asm(\".include \\\"SECRET\\\"\");"},
    {"AsksWhetherASecretExists", "\n#if __has_include(\"SECRET\")\nchar $x[] = \"wl_secret_7319\";\n#endif\n", true},
    {"ComparesTheTimeOfASecret", "\n#pragma GCC dependency \"SECRET\"\n"},
    {"IncludesTheParentsEnvironment", "\n#include \"/proc/PARENT/environ\"\n"},
    {"IncbinsTheParentsEnvironment", "asm(\".data\\n.incbin \\\"/proc/PARENT/environ\\\"\\n.text\");"},
    {"IncbinsTheParentsSecret", "asm(\".data\\n.incbin \\\"/proc/PARENT/cwd/SECRET\\\"\\n.text\");"},
    {"IncbinsItsOwnEnvironment", "asm(\".data\\n.incbin \\\"/proc/self/environ\\\"\\n.text\");"},
    {"IncludesAccounts", "\n#include \"/etc/passwd\"\n"},
    {"IncbinsPasswords", "asm(\".data\\n.incbin \\\"/etc/shadow\\\"\\n.text\");"},
    {"IncludesAnotherUnit", "\n#include \"../unit1/unit.cpp\"\n#include \"../unit2/unit.cpp\"\n"},
    {"LoadsAPluginByPragma", "\n#pragma GCC optimize(\"-fplugin=PLUGIN\")\n", true},
    {"LoadsAPluginByAttribute", "__attribute__((optimize(\"fplugin=PLUGIN\"))) void $f() {}", true},
    {"LoadsAPluginByTarget", "\n#pragma GCC target(\"fplugin=PLUGIN\")\n", true},
    {"LoadsAPrecompiledHeader", "\n#pragma GCC pch_preprocess \"SECRET\"\n"},
    {"EndlessTemplates", "template <int N> struct $S { static constexpr long v = $S<N + 1>::v; }; long $x = $S<0>::v;"},
    {"ExponentialTemplates",
     "template <int N, int M> struct $S { static constexpr long v = $S<N - 1, 2 * M>::v + $S<N - 1, 2 * M + 1>::v; };\n"
     "template <int M> struct $S<0, M> { static constexpr long v = M; };\nlong $x = $S<26, 1>::v;"},
    {"AGigabyteOfObject", "asm(\".data\\n.fill 1073741824, 1, 1\\n.text\");"},
    {"AGigabyteOfMessages",
     "\n#pragma message \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"\n"
     "#include \"unit.cpp\"\n#include \"unit.cpp\"\n"},
    {"IncludesZeros", "\n#include \"/dev/zero\"\n"},
    {"IncbinsZeros", "asm(\".incbin \\\"/dev/zero\\\"\");"},
    {"IncludesItsInput", "\n#include \"/dev/stdin\"\n"},
};

uintmax_t bytes_in(const std::string& folder) {
  uintmax_t sum = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file(error)) sum += entry.file_size(error);
  return sum;
}

class SourceZoo : public ::testing::TestWithParam<Attack> {
 protected:
  // Compiles a shared object whose constructor creates a file. GCC runs a plugin's constructor before it checks its
  // licence.
  void SetUp() override {
    if (const absl::Status works = sandbox_works(); !works.ok()) GTEST_SKIP() << works;
    std::ofstream(secret_) << kSecret << " " << kSecret << "\n";
    const std::string source = scratch_.path("plugin.cpp");
    std::ofstream(source) << "#include <cstdio>\n__attribute__((constructor)) static void f() { fclose(fopen(\""
                          << loaded_ << "\", \"w\")); }\n";
    ASSERT_EQ(std::system(absl::StrCat("g++ -shared -fPIC -o ", plugin_, " ", source).c_str()), 0);
    std::filesystem::create_directory(scratch_.path("work"));
    setenv("WL_SECRET", kSecret, 1);
  }
  void TearDown() override { unsetenv("WL_SECRET"); }

  const Scratch scratch_;
  const std::string secret_ = scratch_.path("secret"), plugin_ = scratch_.path("plugin.so"),
                    loaded_ = scratch_.path("loaded");
};

TEST_P(SourceZoo, ReadsAndLeavesNothing) {
  const Attack& attack = GetParam();
  const std::string text =
      absl::StrReplaceAll(attack.text, {{"SECRET", secret_}, {"PLUGIN", plugin_}, {"PARENT", absl::StrCat(getpid())}});
  CompileOptions options;
  options.folder = scratch_.path("work");
  options.deadline_ns = kDeadline;
  options.unit = 1;
  options.jobs = 1;
  options.sandbox = Sandbox::kBubblewrap;
  // Candidate 1 makes the attack. It is compiled after candidate 2 and before candidate 0, both of which are correct
  // kernels.
  const auto compiled =
      compile_cpu({candidate(0, kAdd), candidate(1, kAdd, text), candidate(2, absl::StrCat("//\n", kAdd))}, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (size_t good : {0, 2}) EXPECT_EQ((*compiled)[good].outcome, Outcome::kCorrect) << (*compiled)[good].message;
  const Compiled& one = (*compiled)[1];
  if (!attack.may_compile) {
    EXPECT_NE(one.outcome, Outcome::kCorrect);
    EXPECT_FALSE(one.message.empty());
  }
  EXPECT_THAT(one.message, Not(HasSubstr(kSecret)));
  if (one.outcome == Outcome::kCorrect) {
    const auto object = PrivateFolder::read(one.object);
    ASSERT_TRUE(object.ok());
    EXPECT_EQ(object->find(kSecret), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(loaded_)) << "the plugin was loaded";
  EXPECT_LT(bytes_in(options.folder), kMostBytes);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

INSTANTIATE_TEST_SUITE_P(All, SourceZoo, ::testing::ValuesIn(kAttacks),
                         [](const auto& test) { return std::string(test.param.name); });

// Returns whether some process on this machine has this argument.
bool runs(const std::string& argument) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string line = testing::file_text(entry.path() / "cmdline");
    if (line.find(std::string(1, '\0') + argument + std::string(1, '\0')) != std::string::npos) return true;
  }
  return false;
}

TEST(Box, EndsWithAllThatItStarted) {
  if (const absl::Status works = sandbox_works(); !works.ok()) GTEST_SKIP() << works;
  for (const bool kill : {true, false}) {
    const std::string seconds = absl::StrCat("3141", getpid(), kill ? "1" : "2");
    Process::Options options;
    options.environment = {"PATH=/usr/bin:/bin"};
    options.arguments = {"/bin/sh", "-c",
                         absl::StrCat("setsid sleep ", seconds, " & (trap '' TERM HUP INT; sleep ", seconds,
                                      ") & echo ready; ", kill ? absl::StrCat("sleep ", seconds) : "exit 7")};
    put_in({}, options);
    absl::StatusOr<Process> process = Process::start(options);
    ASSERT_TRUE(process.ok()) << process.status();
    Drain drain(100);
    if (kill) {
      while (process->running() && drain.text().find("ready") == std::string::npos)
        (void)process->wait(monotonic_ns() + 20'000'000, drain);
      ASSERT_TRUE(process->running()) << drain.text();
      EXPECT_TRUE(runs(seconds));
      EXPECT_TRUE(process->kill().ok());
    } else {
      const absl::StatusOr<Exit> exit = process->wait(monotonic_ns() + 30'000'000'000, drain);
      ASSERT_TRUE(exit.ok()) << exit.status();
      EXPECT_EQ(describe(*exit), "exited with status 7") << drain.text();
    }
    EXPECT_FALSE(runs(seconds));
  }
}

TEST(Box, ShowsTheSystemAndItsOwnFolderOnly) {
  if (const absl::Status works = sandbox_works(); !works.ok()) GTEST_SKIP() << works;
  const Scratch scratch;
  std::ofstream(scratch.path("secret")) << kSecret;
  std::filesystem::create_directory(scratch.path("work"));
  std::filesystem::create_directory(scratch.path("shown"));
  std::ofstream(scratch.path("shown/file")) << "shown";
  Process::Options options;
  options.environment = {"PATH=/usr/bin:/bin"};
  options.arguments = {
      "/bin/sh", "-c",
      absl::StrCat("cat ", scratch.path("secret"), "; cat ", scratch.path("shown/file"),
                   "; echo made > file; for f in / /dev/shm /usr ", scratch.path("shown"),
                   "; do echo x > $f/x && echo wrote $f; done; ls /home /root /var /proc; env; "
                   "cat < /dev/tcp/127.0.0.1/1; head -c 300000000 /dev/zero > /tmp/large && echo large")};
  Box box;
  box.work = scratch.path("work");
  box.read = {scratch.path("shown")};
  put_in(box, options);
  absl::StatusOr<Process> process = Process::start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  Drain drain(10000);
  ASSERT_TRUE(process->wait(monotonic_ns() + 30'000'000'000, drain).ok());
  EXPECT_THAT(drain.text(), Not(HasSubstr(kSecret)));
  EXPECT_THAT(drain.text(), HasSubstr("shown"));
  EXPECT_THAT(drain.text(), Not(HasSubstr("wrote")));
  EXPECT_THAT(drain.text(), HasSubstr("cannot access '/home'"));
  EXPECT_THAT(drain.text(), HasSubstr("cannot access '/proc'"));
  EXPECT_THAT(drain.text(), Not(HasSubstr("WARPLOOM")));
  EXPECT_THAT(drain.text(), HasSubstr("No space left"));
  EXPECT_EQ(PrivateFolder::read(scratch.path("work/file")).value_or(""), "made\n");
}

}  // namespace
}  // namespace wl

// Candidates that attack the machine on which they run. Each makes one attack, and spoils its own result if the attack
// succeeds; a candidate whose attack is refused is therefore measured as a correct kernel. Whatever the outcome, the
// worker survives, no secret is read, no file or process is left behind, and the next candidate is correct.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/unit/scratch.h"
#include "tests/unit/worker/kernels.h"

namespace wl {
namespace {

using testing::add_batch;
using testing::candidate;
using ::testing::HasSubstr;
using testing::kAdd;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizedRunner = true;
#else
constexpr bool kSanitizedRunner = false;
#endif

struct Escape {
  const char* name;
  // C expression that is true if the attack succeeded; SECRET stands for a file's path, PARENT for this process's id
  const char* reached;
  Outcome outcome = Outcome::kCorrect;
  const char* message = "";
  const char* before = "";
};

// A C expression for an attack by a system call. It is false only if the call fails with EPERM (error 1), the error
// of a call that the system-call filter refuses whatever its arguments are.
#define WL_NOT_REFUSED(...) "(syscall(" __VA_ARGS__ ") != -1 || *__errno_location() != 1)"

const Escape kEscapes[] = {
    // Attacks that start processes or threads.
    {"ForkBomb",
     "({ int n = 0; for (int k = 0; k < 200; ++k) { int p = fork(); if (p == 0) for (;;) fork(); n += p > 0; } n; })"},
    {"ForkByClone", "syscall(__NR_clone, 17, 0, 0, 0, 0) >= 0"},
    {"ForkByClone3", "({ long a[11] = {}; a[4] = 17; syscall(__NR_clone3, a, sizeof a) >= 0; })"},
    {"ThreadsWithoutEnd",
     "({ int n = 0; for (int k = 0; k < 100; ++k) { unsigned long t; n += pthread_create(&t, 0, $idle, 0) == 0; } n; "
     "})",
     Outcome::kCorrect, "", "void* $idle(void*) { for (;;) sleep(1000); }"},
    {"ExecutesAShell",
     "({ char* const argv[] = {(char*)\"sh\", (char*)\"-c\", (char*)\"sleep 1000\", 0}; execve(\"/bin/sh\", argv, 0) "
     "== 0; })"},
    {"ExecutesAFileInMemory", "syscall(__NR_memfd_create, \"x\", 0) >= 0"},
    {"LeavesItsSession", "setsid() >= 0 || setpgid(0, 0) == 0"},
    {"OutlivesItsParent", "prctl(1, 0) == 0"},
    {"IsDumpable", "prctl(4, 1) == 0"},
    {"RunsFirst", "syscall(__NR_setpriority, 0, 0, -20) == 0 || syscall(__NR_sched_setscheduler, 0, 1, &i) == 0"},
    // Attacks on other processes.
    {"KillsAll", "kill(-1, 0) == 0 || kill(PARENT, 0) == 0"},
    {"KillsByThread", "syscall(__NR_tgkill, PARENT, PARENT, 0) == 0 || syscall(__NR_tgkill, 1, 1, 0) == 0"},
    {"QueuesASignal", WL_NOT_REFUSED("__NR_rt_sigqueueinfo, PARENT, 0, 0")},
    {"ReadsItsParentsMemory", "open(\"/proc/PARENT/mem\", 0) >= 0 || open(\"/proc/PARENT/environ\", 0) >= 0"},
    {"ReadsItsFirstProcess", "open(\"/proc/1/mem\", 2) >= 0 || open(\"/proc/1/root/SECRET\", 0) >= 0"},
    {"CopiesItsParentsMemory", WL_NOT_REFUSED("__NR_process_vm_readv, PARENT, args, 1, args, 1, 0")},
    {"WritesItsParentsMemory", WL_NOT_REFUSED("__NR_process_vm_writev, PARENT, args, 0, args, 0, 0")},
    {"TakesADescriptor",
     "({ long p = syscall(__NR_pidfd_open, PARENT, 0); p >= 0 || syscall(__NR_pidfd_getfd, p, 0, 0) >= 0; })"},
    {"Traces", WL_NOT_REFUSED("__NR_ptrace, 0x4206, PARENT, 0, 0") " || ptrace(0, 0, 0, 0) == 0"},
    {"ComparesProcesses", WL_NOT_REFUSED("__NR_kcmp, PARENT, 1, 0, 0, 0")},
    {"SharesMemory", "syscall(__NR_shmget, 0, 4096, 0600) >= 0 || open(\"/dev/shm/wl_zoo\", 0102, 0600) >= 0"},
    // Attacks on files.
    {"ReadsASecret", "open(\"SECRET\", 0) >= 0"},
    {"ReadsAccounts", "open(\"/etc/passwd\", 0) >= 0 || open(\"/etc/shadow\", 0) >= 0"},
    {"EscapesByItsParent", "open(\"/proc/PARENT/root/etc/passwd\", 0) >= 0 || open(\"/proc/PARENT/cwd\", 0) >= 0"},
    {"FillsTheDisk",
     "open(\"/tmp/x\", 0102, 0600) >= 0 || open(\"/dev/x\", 0102, 0600) >= 0 || open(\"x\", 0102, 0600) >= 0"},
    {"MakesFolders", "mkdir(\"/tmp/x\", 0700) == 0 || symlink(\"/\", \"/tmp/y\") == 0"},
    {"UnlinksItsObject",
     "({ void* d[4] = {}; dladdr((void*)&$self, d); d[0] == 0 || unlink((char*)d[0]) == 0 || chmod((char*)d[0], 0777) "
     "== 0; })",
     Outcome::kCorrect, "", "extern \"C\" int dladdr(const void*, void*); static int $self;"},
    {"WritesItsObject", "({ void* d[4] = {}; dladdr((void*)&$self, d); open((char*)d[0], 2) >= 0; })",
     Outcome::kCorrect, "", "extern \"C\" int dladdr(const void*, void*); static int $self;"},
    {"WritesItsOwnCode", "open(\"/proc/self/mem\", 2) >= 0"},
    {"SavesItself", "open(\"/proc/self/oom_score_adj\", 1) >= 0"},
    // Attacks on memory and on the limits of the process.
    {"MapsSharedMemory", "mmap(0, 1L << 30, 3, 0x21, -1, 0) != (void*)-1"},
    {"MapsAGrowingStack", "mmap(0, 1L << 30, 3, 0x122, -1, 0) != (void*)-1"},
    {"MapsWritableCode",
     "mmap(0, 4096, 7, 0x22, -1, 0) != (void*)-1 || mprotect((void*)((long)&i & -4096), 4096, 7) == 0"},
    {"RaisesItsLimits",
     "({ long most[2] = {-1, -1}; int n = 0; for (int r = 0; r < 16; ++r) n += setrlimit(r, most) == 0; n; })"},
    {"SmashesItsStack", "({ volatile char x[8]; for (int k = 0; k < 8192; ++k) x[k] = 65; 1; })",
     Outcome::kRuntimeError, "SIG"},
    // Attacks on the operating system's kernel.
    {"UsesIoUring", WL_NOT_REFUSED("__NR_io_uring_setup, 1, 0")},
    {"LoadsBpf", WL_NOT_REFUSED("__NR_bpf, 0, 0, 0")},
    {"CountsEvents", WL_NOT_REFUSED("__NR_perf_event_open, 0, 0, 0, 0, 0")},
    {"HandlesFaults", WL_NOT_REFUSED("__NR_userfaultfd, 0")},
    {"KeepsKeys", WL_NOT_REFUSED("__NR_keyctl, 0, 0, 0, 0, 0") " || " WL_NOT_REFUSED("__NR_add_key, 0, 0, 0, 0, 0")},
    {"LeavesItsNamespaces", WL_NOT_REFUSED("__NR_unshare, 0x10000000") " || " WL_NOT_REFUSED("__NR_setns, 0, 0")},
    {"Mounts", WL_NOT_REFUSED("__NR_mount, 0, 0, 0, 0, 0") " || " WL_NOT_REFUSED(
                   "__NR_chroot, \"/\"") " || " WL_NOT_REFUSED("__NR_pivot_root, 0, 0")},
    {"FiltersItself", WL_NOT_REFUSED("__NR_seccomp, 2, 0, 0")},
    {"TypesAtTheTerminal", "ioctl(0, 0x5412, \"x\") == 0 || ioctl(1, 0x5412, \"x\") == 0"},
#if defined(__x86_64__)
    {"CallsAs32Bits", "({ int r; asm volatile(\".byte 0xcd, 0x80\" : \"=a\"(r) : \"a\"(20) : \"memory\"); r >= 0; })"},
    {"CallsAsX32", "syscall(0x40000000 + 39) != -1"},
#endif
    // Attacks on the network.
    {"Connects", "socket(2, 1, 0) >= 0 || socket(10, 2, 0) >= 0"},
    {"TalksToTheMachine", "socket(1, 1, 0) >= 0 || socket(16, 3, 0) >= 0 || socket(38, 5, 0) >= 0"},
    // Attacks on clocks, timers and deadlines.
    {"SetsTheClock", WL_NOT_REFUSED("__NR_clock_settime, 0, 0") " || " WL_NOT_REFUSED("__NR_adjtimex, 0")},
    {"SetsATimer", "({ long t[4] = {0, 1, 0, 1}; setitimer(0, t, 0) == 0 || alarm(1) == 0; })"},
    {"SetsATimerOfAThread", WL_NOT_REFUSED("__NR_timer_create, 0, 0, 0")},
    {"HandlesEverySignal", "({ for (int s = 1; s < 65; ++s) signal(s, $no); for (;;) asm volatile(\"\"); 1; })",
     Outcome::kTimeout, "deadline", "void $no(int) {}"},
    {"BlocksEverySignal",
     "({ long all[16]; memset(all, 255, sizeof all); sigprocmask(0, all, 0); for (;;) sleep(1000); 1; })",
     Outcome::kTimeout, "deadline"},
    // Attacks on the runner.
    {"ExitsEarly", "({ _exit(0); 1; })", Outcome::kRuntimeError, "exited with status 0"},
    {"ForgesAnAnswer",
     "({ for (int r = 0; r < 64; ++r) { struct __attribute__((packed)) { unsigned size; char kind; unsigned request; "
     "long a, b; } "
     "f = {21, 8, (unsigned)r, 0, 0}; write(3, &f, sizeof f); } sleep(1000); 1; })",
     Outcome::kRuntimeError, "the kernel's process"},
    {"ForgesAGigabyteOfAnswer", "({ unsigned size[3] = {1 << 30}; write(3, size, 9); sleep(1000); 1; })",
     Outcome::kRuntimeError, "junk"},
    {"FloodsItsOutput",
     "({ static char x[1 << 20]; memset(x, 'x', sizeof x); for (int k = 0; k < 64; ++k) write(1 + k % 2, x, sizeof x); "
     "0; })"},
    {"SendsToOthers", "syscall(__NR_sendto, 1, \"x\", 1, 0, 0, 0) >= 0 || " WL_NOT_REFUSED("__NR_sendmsg, 3, 0, 0")},
    {"ReceivesADescriptor", WL_NOT_REFUSED("__NR_recvmsg, 3, 0, 0")},
    // The attacks on the limit of memory come last, because the test leaves them out if the runner is built with
    // sanitizers: the memory of such a runner is not limited.
    {"MapsAHundredGigabytes", "mmap(0, 100L << 30, 3, 0x22, -1, 0) != (void*)-1"},
    {"AllocatesForEver", "({ for (;;) { volatile char* p = (volatile char*)malloc(1 << 26); p[0] = 1; } 1; })",
     Outcome::kRuntimeError, "SIGSEGV"},
};

// Declarations that replace headers, in addition to those of the tests' prelude.
constexpr char kCalls[] = R"(
#include <asm/unistd.h>
extern "C" { long syscall(long, ...); int open(const char*, int, ...); void* mmap(void*, unsigned long, int, int, int, long);
int mprotect(void*, unsigned long, int); int setrlimit(int, const void*); int kill(int, int); int prctl(int, ...); int setsid();
int setpgid(int, int); long ptrace(int, ...); int socket(int, int, int); int mkdir(const char*, unsigned); int unlink(const char*);
int chmod(const char*, unsigned); int symlink(const char*, const char*); int execve(const char*, char* const*, char* const*);
int pthread_create(unsigned long*, const void*, void* (*)(void*), void*); int ioctl(int, unsigned long, ...);
int setitimer(int, const void*, void*); unsigned alarm(unsigned); void (*signal(int, void (*)(int)))(int);
int sigprocmask(int, const void*, void*); int* __errno_location(); long read(int, void*, unsigned long); int close(int); }
)";

Candidate attacker(int64_t trial, const std::string& reached, const std::string& before, const std::string& secret) {
  const std::string body = absl::StrCat("static int tried, hit; if (i == 0 && !tried) { tried = 1; hit = (", reached,
                                        ") ? 1 : 0; } ", kAdd, " if (hit) c[i * 64] = -12345;");
  const std::vector<std::pair<std::string, std::string>> names = {{"SECRET", secret},
                                                                  {"PARENT", absl::StrCat(getpid())}};
  return candidate(trial, absl::StrReplaceAll(body, names), absl::StrCat(kCalls, before));
}

TEST(CandidateZoo, NothingIsReadOrLeftAndTheNextIsRight) {
  const Scratch scratch;
  std::ofstream(scratch.path("secret")) << "secret";
  MeasureOptions options = testing::options();
  if (options.sandbox == Sandbox::kNone) GTEST_SKIP() << sandbox_works();
  std::filesystem::create_directory(scratch.path("work"));
  options.work_dir = scratch.path("work");
  Batch batch = add_batch(1024);
  batch.recipe.deadline_ns = 1'500'000'000;
  for (const Escape& escape : kEscapes) {
    if (kSanitizedRunner && std::string(escape.name) == "MapsAHundredGigabytes") break;
    const auto n = static_cast<int64_t>(batch.candidates.size());
    batch.candidates.push_back(attacker(n, escape.reached, escape.before, scratch.path("secret")));
    batch.candidates.push_back(candidate(n + 1, absl::StrCat("// ", n, "\n", kAdd)));
  }
  const absl::StatusOr<Measured> measured = measure(batch, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->trials.size(), batch.candidates.size());
  for (size_t a = 0; 2 * a < measured->trials.size(); ++a) {
    const Escape& escape = kEscapes[a];
    SCOPED_TRACE(escape.name);
    const Trial& trial = measured->trials[2 * a];
    EXPECT_EQ(trial.outcome, escape.outcome) << trial.message;
    EXPECT_THAT(trial.message, HasSubstr(escape.message));
    EXPECT_EQ(measured->trials[2 * a + 1].outcome, Outcome::kCorrect) << measured->trials[2 * a + 1].message;
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_TRUE(std::filesystem::is_empty(options.work_dir));
}

// The expected value is not a sum of the inputs, so a candidate could learn it only by searching the process's
// memory. The candidate computes the pattern that it searches for at run time, so that it does not find the pattern
// in its own code.
TEST(CandidateZoo, ExpectedValuesAreNowhereInItsReach) {
  if (kSanitizedRunner) GTEST_SKIP() << "the memory of a sanitizer is too large to search";
  MeasureOptions options = testing::options();
  Batch batch = add_batch(1024);
  const uint64_t mask = 0x5a5a5a5a5a5a5a5a;
  const double expected = 1234567.1234567;
  const uint64_t hidden = std::bit_cast<uint64_t>(expected) ^ mask;
  for (Check& check : batch.checks) check.samples = {{2, 0, expected, 1}};
  constexpr char kSearch[] = R"(
static int $finds() {
  static char text[1 << 20];
  volatile unsigned long mask = MASK;
  const int maps = open("/proc/self/maps", 0);
  long n = 0, got = 0;
  while (maps >= 0 && (got = read(maps, text + n, sizeof text - 1 - n)) > 0) n += got;
  if (n == 0) return 1;
  int found = 0;
  for (char *at = text, *end; at < text + n; at = end + 1) {
    unsigned long range[2] = {0, 0};
    for (int side = 0; side < 2; ++side, ++at)
      for (; *at != '-' && *at != ' '; ++at) range[side] = range[side] * 16 + (*at <= '9' ? *at - '0' : *at - 'a' + 10);
    int kernels = 0;  // the pages of clocks cannot be read
    for (end = at; end < text + n && *end != '\n'; ++end) kernels |= *end == '[' && end[1] == 'v';
    if (*at == 'r' && !kernels)
      for (const volatile unsigned long* word = (unsigned long*)range[0]; (unsigned long)word < range[1]; ++word)
        found |= (*word ^ mask) == HIDDEN;
  }
  close(maps);
  return found;
})";
  const std::string search =
      absl::StrReplaceAll(kSearch, {{"MASK", absl::StrCat(mask, "ul")}, {"HIDDEN", absl::StrCat(hidden, "ul")}});
  // The second candidate contains the expected value itself, which shows that the search finds it.
  batch.candidates = {attacker(0, "$finds()", search, ""),
                      attacker(1, "$finds()", absl::StrCat("volatile double $known = 1234567.1234567;", search), "")};
  const absl::StatusOr<Measured> measured = measure(batch, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  const Trial& trial = measured->trials.at(0);
  EXPECT_EQ(trial.outcome, Outcome::kWrongResult) << trial.message;
  EXPECT_THAT(trial.message, HasSubstr("c(0, 0): expected"));
  EXPECT_THAT(trial.message, ::testing::Not(HasSubstr("-12345"))) << "the value was found";
  EXPECT_THAT(measured->trials.at(1).message, HasSubstr("-12345"));
}

}  // namespace
}  // namespace wl

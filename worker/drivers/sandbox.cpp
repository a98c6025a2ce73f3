#include "worker/drivers/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace wl {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // shadow memory would count as private memory
#else
constexpr bool kSanitized = false;
#endif

void set_limit(int resource, rlim_t soft) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? soft : std::min(soft, limit.rlim_max);
  (void)setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

constexpr uint32_t kForbidden[] = {
    SYS_execve,   SYS_execveat, SYS_socket, SYS_kill,      SYS_ptrace,  SYS_setsid,   SYS_setpgid, SYS_mount,
    SYS_unlinkat, SYS_mkdirat,  SYS_prctl,  SYS_renameat2, SYS_openat2, SYS_truncate,
#if defined(__x86_64__)
    SYS_fork,     SYS_vfork,    SYS_unlink, SYS_rename,    SYS_mkdir,   SYS_rmdir,    SYS_creat,   SYS_renameat,
#endif
};

// Installs a filter that answers EPERM to system calls that kernels do not need. Threads stay possible: clone3, whose
// flags a filter cannot see, is answered with ENOSYS, and clone must have CLONE_THREAD. Files can be opened for reading
// only.
void forbid_system_calls() {
  std::vector<sock_filter> code;
  const auto load = [&](size_t offset) {
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  };
  const auto answer = [&](uint32_t action) { code.push_back(BPF_STMT(BPF_RET | BPF_K, action)); };
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  const auto when = [&](uint32_t number, uint32_t action) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    answer(action);
  };
  constexpr size_t kNumber = offsetof(seccomp_data, nr);
  constexpr size_t kFirst = offsetof(seccomp_data, args);
  load(offsetof(seccomp_data, arch));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  answer(kRefuse);
  load(kNumber);
  for (uint32_t number : kForbidden) when(number, kRefuse);
  when(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
  load(kFirst);
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
  answer(kRefuse);
  answer(SECCOMP_RET_ALLOW);
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3));
  load(kFirst + 2 * sizeof(uint64_t));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1));
  answer(kRefuse);
#if defined(__x86_64__)
  load(kNumber);
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 3));
  load(kFirst + sizeof(uint64_t));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1));
  answer(kRefuse);
#endif
  answer(SECCOMP_RET_ALLOW);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace

void enter_sandbox(pid_t parent, bool runs_foreign_code) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // the parent ended before the line above
  set_limit(RLIMIT_CORE, 0);
  if (runs_foreign_code) {
    set_limit(RLIMIT_FSIZE, 0);
    set_limit(RLIMIT_NOFILE, 64);
  }
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "w")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && kArchitecture != 0 && runs_foreign_code) forbid_system_calls();
}

void limit_cpu(int64_t seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  set_limit(RLIMIT_CPU, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + seconds + 1));
}

void limit_memory(int64_t bytes) {
  if (!kSanitized) set_limit(RLIMIT_DATA, static_cast<rlim_t>(bytes));
}

}  // namespace wl

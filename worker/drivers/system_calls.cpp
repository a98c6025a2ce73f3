#include "worker/drivers/system_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

// The system calls that every child may make. Names that the architecture does not have are skipped.
constexpr const char* kForAll[] = {
    // Calls that allocate memory and change mappings.
    "brk", "munmap", "mremap", "madvise", "mincore", "membarrier",
    // Calls that read files and use the child's descriptors.
    "read", "readv", "pread64", "preadv", "write", "writev", "close", "lseek", "fstat", "newfstatat", "stat", "lstat",
    "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd", "fadvise64",
    // Calls for the child's own threads and signals.
    "futex", "sched_yield", "sched_getaffinity", "sched_setaffinity", "getcpu", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigpending", "sigaltstack", "set_robust_list", "get_robust_list", "rseq", "arch_prctl",
    "set_tid_address", "restart_syscall", "exit", "exit_group",
    // Calls for clocks, and for facts about the process and the system.
    "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getpid",
    "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "uname", "sysinfo", "getrusage",
    "getrlimit"};

constexpr const char* kForCompilers[] = {"mmap",
                                         "mprotect",
                                         "msync",
                                         "pwrite64",
                                         "pwritev",
                                         "open",
                                         "openat",
                                         "creat",
                                         "unlink",
                                         "unlinkat",
                                         "rename",
                                         "renameat",
                                         "renameat2",
                                         "mkdir",
                                         "mkdirat",
                                         "rmdir",
                                         "link",
                                         "linkat",
                                         "symlink",
                                         "symlinkat",
                                         "chmod",
                                         "fchmod",
                                         "fchmodat",
                                         "umask",
                                         "ftruncate",
                                         "truncate",
                                         "fallocate",
                                         "utimensat",
                                         "chdir",
                                         "fchdir",
                                         "getdents",
                                         "getdents64",
                                         "statfs",
                                         "fstatfs",
                                         "flock",
                                         "fsync",
                                         "fdatasync",
                                         "sendfile",
                                         "copy_file_range",
                                         "dup",
                                         "dup2",
                                         "dup3",
                                         "pipe",
                                         "pipe2",
                                         "fcntl",
                                         "ioctl",
                                         "poll",
                                         "ppoll",
                                         "select",
                                         "pselect6",
                                         "epoll_create1",
                                         "epoll_ctl",
                                         "epoll_wait",
                                         "epoll_pwait",
                                         "eventfd2",
                                         "fork",
                                         "vfork",
                                         "execve",
                                         "execveat",
                                         "wait4",
                                         "waitid",
                                         "kill",
                                         "tgkill",
                                         "getpgrp",
                                         "getpgid",
                                         "setpgid",
                                         "getsid",
                                         "pidfd_open",
                                         "getgroups",
                                         "prlimit64",
                                         "setrlimit",
                                         "prctl",
                                         "getpriority",
                                         "setpriority",
                                         "sched_getparam",
                                         "sched_getscheduler",
                                         "sched_get_priority_max",
                                         "sched_get_priority_min",
                                         "rt_sigtimedwait",
                                         "rt_sigsuspend",
                                         "sendto",
                                         "recvfrom",
                                         "alarm",
                                         "setitimer",
                                         "getitimer"};

constexpr const char* kForDrivers[] = {"memfd_create",    "mlock",
                                       "mlock2",          "munlock",
                                       "mlockall",        "munlockall",
                                       "mbind",           "set_mempolicy",
                                       "get_mempolicy",   "sched_setscheduler",
                                       "sched_setparam",  "timerfd_create",
                                       "timerfd_settime", "timerfd_gettime",
                                       "timer_create",    "timer_settime",
                                       "timer_delete",    "socketpair",
                                       "sendmsg",         "recvmsg",
                                       "getsockopt",      "setsockopt",
                                       "shmget",          "shmat",
                                       "shmctl",          "shmdt",
                                       "inotify_init1",   "inotify_add_watch",
                                       "capget",          "bind",
                                       "listen",          "accept",
                                       "accept4",         "getsockname",
                                       "shutdown",        "connect"};

using Conditions = std::initializer_list<scmp_arg_cmp>;

scmp_arg_cmp equal(unsigned argument, uint64_t value) {
  return {argument, SCMP_CMP_EQ, value, 0};
}
scmp_arg_cmp masked(unsigned argument, uint64_t mask, uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

class Filter {
 public:
  explicit Filter(Permitted permitted) : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {
    if (!context_) return;
    for (const char* name : kForAll) allow(name);
    if (permitted == Permitted::kCandidate || permitted == Permitted::kLibrary) {
      allow_candidate(permitted == Permitted::kLibrary);
    } else {
      for (const char* name : kForCompilers) allow(name);
      // Compilers may start threads and processes, but only in the same namespaces. clone3 is refused with ENOSYS, so
      // that callers fall back to clone: clone3's flags lie in memory, which a filter cannot read.
      constexpr uint64_t kSpaces =
          CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
      allow("clone", {masked(0, kSpaces, 0)});
      note(seccomp_rule_add_array(context_.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, nullptr));
    }
    if (permitted == Permitted::kDriver) {
      for (const char* name : kForDrivers) allow(name);
      // NVIDIA's driver listens on a local socket to share its memory with other processes, and finds no device if it
      // cannot. It also connects to the socket of NVIDIA's service for several processes (MPS).
      allow("socket", {equal(0, AF_UNIX)});
    }
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    set(SCMP_FLTATR_CTL_TSYNC, 1);
    // Without the attribute SCMP_FLTATR_CTL_SSB, Linux before 5.16 turns on a mitigation of speculative store bypass
    // that slows down memory accesses, and with them the kernels to be timed.
    set(SCMP_FLTATR_CTL_SSB, 1);
    set(SCMP_FLTATR_CTL_OPTIMIZE, 2);
  }

  absl::Status load() {
    if (context_ && error_ == 0) note(seccomp_load(context_.get()));
    return status();
  }

  absl::StatusOr<Descriptor> program() {
    WL_RETURN_IF_ERROR(status());
    Descriptor file(memfd_create("seccomp", MFD_CLOEXEC));
    if (!file.valid()) return absl::UnavailableError(absl::StrCat("cannot make a file: ", std::strerror(errno)));
    note(seccomp_export_bpf(context_.get(), file.get()));
    WL_RETURN_IF_ERROR(status());
    lseek(file.get(), 0, SEEK_SET);
    return file;
  }

 private:
  // Permits the system calls of a candidate. Calls that start threads or set limits are not among them, since the
  // runner starts its threads and sets its limits before it loads the filter.
  void allow_candidate(bool makes_code) {
    constexpr uint64_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE;
    allow("open", {masked(1, kWrites, O_RDONLY)});
    allow("openat", {masked(2, kWrites, O_RDONLY)});
    // Private memory counts against the memory limit; shared memory and memory that grows like a stack would not, so
    // neither is permitted. Memory is not writable and executable at the same time, unless a library generates code.
    std::vector<uint64_t> protections = {0, PROT_WRITE, PROT_EXEC};
    if (makes_code) protections.push_back(PROT_WRITE | PROT_EXEC);
    for (const uint64_t protection : protections) {
      const scmp_arg_cmp kind = masked(2, PROT_WRITE | PROT_EXEC, protection);
      allow("mmap", {kind, masked(3, MAP_SHARED | MAP_GROWSDOWN | MAP_HUGETLB, 0)});
      allow("mprotect", {kind});
    }
    allow("tgkill", {equal(0, static_cast<uint64_t>(getpid()))});
    // the process may read its limits, but not set them: the pointer to new limits must be null
    allow("prlimit64", {equal(2, 0)});
    allow("sendto", {equal(0, 3)});
    allow("recvfrom", {equal(0, 3)});
  }

  void allow(const char* name, Conditions conditions = {}) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return;
    note(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, number, static_cast<unsigned>(conditions.size()),
                                conditions.begin()));
  }
  void set(scmp_filter_attr attribute, uint32_t value) { note(seccomp_attr_set(context_.get(), attribute, value)); }
  void note(int result) { error_ = error_ != 0 ? error_ : -result; }

  absl::Status status() const {
    if (context_ && error_ == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("cannot filter system calls (libseccomp): ", std::strerror(context_ ? error_ : ENOMEM)));
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int error_ = 0;
};

}  // namespace

absl::Status allow_only(Permitted permitted) {
  return Filter(permitted).load();
}

absl::StatusOr<Descriptor> filter_program(Permitted permitted) {
  return Filter(permitted).program();
}

}  // namespace wl

#include "client/cli/process.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "client/cli/exit_code.h"

namespace wl {
namespace {

// The interval between checks whether the other process still runs, on systems without pidfds.
constexpr auto kLookEvery = std::chrono::milliseconds(100);
// The time that this process may take to end after SIGTERM, before _exit() ends it.
constexpr auto kLongestEnd = std::chrono::seconds(2);

// Returns when a process has ended. `watched`: the process's pidfd, which becomes readable at its end; negative: the
// system has no pidfds.
void await_end(pid_t process, int watched) {
  if (watched < 0) {
    while (::kill(process, 0) == 0 || errno == EPERM) std::this_thread::sleep_for(kLookEvery);
    return;
  }
  pollfd poller{watched, POLLIN, 0};
  while (::poll(&poller, 1, -1) < 0 && errno == EINTR) {
  }
}

std::atomic<bool> left_alone = false;

}  // namespace

bool is_left_alone() {
  return left_alone;
}

absl::Status end_with(int64_t process) {
  if (process <= 0 || process > std::numeric_limits<pid_t>::max())
    return invalid("--end-with ", process, ": expected the id of a process");
  const auto pid = static_cast<pid_t>(process);
  const int watched = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (watched < 0 && errno == EINVAL) return invalid("--end-with ", process, ": this is a thread, not a process");
  const bool ended = watched < 0 && errno == ESRCH;
  std::thread([pid, watched, ended] {
    // This thread blocks all signals, so that other threads handle them.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    if (!ended) await_end(pid, watched);
    left_alone = true;
    ::kill(::getpid(), SIGTERM);
    std::this_thread::sleep_for(kLongestEnd);
    _exit(kExitInterrupted);
  }).detach();
  return absl::OkStatus();
}

absl::Status run_when_idle() {
  const sched_param none{};
  if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0)
    return absl::UnavailableError(cat("--idle: the system refuses the policy SCHED_IDLE: ", std::strerror(errno)));
  // Whoever looks at the load of the machine can tell the time of processes of this nice value from that of others.
  ::setpriority(PRIO_PROCESS, 0, 19);
  // Where Linux shares the machine among sessions (autogroups), policies decide only within a session. So a session
  // that this process leads gets the least share, too. A shell's session is left as it is.
  if (::getsid(0) == ::getpid()) std::ofstream("/proc/self/autogroup") << "19";
  return absl::OkStatus();
}

void run_with_share() {
  ::setpriority(PRIO_PROCESS, 0, 1);
}

}  // namespace wl

#include "client/cli/end_with.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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

}  // namespace

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
    ::kill(::getpid(), SIGTERM);
    std::this_thread::sleep_for(kLongestEnd);
    _exit(kExitInterrupted);
  }).detach();
  return absl::OkStatus();
}

}  // namespace wl

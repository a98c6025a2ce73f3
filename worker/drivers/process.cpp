#include "worker/drivers/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

absl::Status system_error(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// The settings of posix_spawn, freed by the destructor.
struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

bool readable(int fd, int64_t timeout_ns) {
  pollfd poller{fd, POLLIN, 0};
  const auto ms = static_cast<int>(std::clamp<int64_t>((timeout_ns + 999'999) / 1'000'000, 0, 60'000));
  return poll(&poller, 1, ms) > 0;
}

constexpr int64_t kPatience = 5'000'000'000;  // how many ns to wait for the end of a killed process

// Returns the children of a single-threaded process, such as bwrap or the first process of its sandbox.
std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream file(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  std::vector<pid_t> children;
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

// Whether a signal has stopped a process or, if `with_below`, one of its descendants.
bool is_stopped(pid_t pid, bool with_below) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  const size_t state = line.rfind(") ");  // the program's name, which comes before the state, may contain blanks
  if (state != std::string::npos && line.compare(state + 2, 1, "T") == 0) return true;
  if (!with_below) return false;
  const std::vector<pid_t> children = children_of(pid);
  return std::any_of(children.begin(), children.end(), [](pid_t child) { return is_stopped(child, true); });
}

absl::Status survives(pid_t process) {
  return absl::UnavailableError(absl::StrCat("process ", process, " survives SIGKILL; this machine needs attention"));
}

}  // namespace

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

int life_of_this_process() {
  static const int kRead = [] {
    int ends[2] = {-1, -1};
    return pipe2(ends, O_CLOEXEC) == 0 ? ends[0] : -1;
  }();
  return kRead;
}

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool Drain::read_from(int fd) {
  char block[65536];
  for (;;) {
    const ssize_t n = read(fd, block, sizeof block);
    if (n > 0) {
      const size_t room = keep_ - std::min(keep_, text_.size());
      text_.append(block, std::min(room, static_cast<size_t>(n)));
      // A read that does not fill the block has emptied the descriptor, so the caller may look at its other
      // descriptors.
      if (static_cast<size_t>(n) < sizeof block) return true;
    } else if (n == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
}

std::string describe(const Exit& exit) {
  if (!exit.signalled) return absl::StrCat("exited with status ", exit.code);
  const char* name = sigabbrev_np(exit.code);
  return name ? absl::StrCat("killed by SIG", name) : absl::StrCat("killed by signal ", exit.code);
}

absl::StatusOr<Process> Process::start(const Options& options) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  Descriptor ours(pipe_ends[0]), theirs(pipe_ends[1]);
  if (fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return system_error("cannot make a pipe non-blocking");

  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, theirs.get(), 1);
  posix_spawn_file_actions_adddup2(&settings.actions, theirs.get(), 2);
  // If the descriptor is 3 already, dup2 would leave its close-on-exec flag set, but posix_spawn clears the flag in
  // this case (since glibc 2.29).
  if (options.pass_fd >= 0) posix_spawn_file_actions_adddup2(&settings.actions, options.pass_fd, 3);
  if (!options.folder.empty()) posix_spawn_file_actions_addchdir_np(&settings.actions, options.folder.c_str());
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments = pointers(options.arguments);
  std::vector<char*> environment = pointers(options.environment);
  Process process;
  const int error = posix_spawnp(&process.pid_, arguments[0], &settings.actions, &settings.attributes, arguments.data(),
                                 options.inherit_environment ? environ : environment.data());
  if (error != 0) {
    process.pid_ = -1;
    const std::string text = absl::StrCat("cannot start ", options.arguments[0], ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
  }
  process.output_ = std::move(ours);
  process.boxed_ = options.boxed;
  process.exit_fd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process.pid_, 0)));
  if (!process.exit_fd_.valid()) return system_error("cannot watch a child process (pidfd_open)");
  return process;
}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(boxed_, other.boxed_);
  std::swap(output_, other.output_);
  std::swap(exit_fd_, other.exit_fd_);
  return *this;
}

bool Process::stopped() const {
  return running() && is_stopped(pid_, boxed_);
}

// Called when the child has ended. Kills the processes that the child left in its process group. If the child is bwrap,
// also waits until its sandbox has ended, that is, until the pipe of its output is closed: the first process of the
// sandbox keeps the pipe open until all other processes of the sandbox have ended.
absl::StatusOr<Exit> Process::reap() {
  // Kills the group before waitpid(), because after that the id may belong to another group.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  const pid_t ended = std::exchange(pid_, -1);
  Drain rest(0);
  const int64_t until = monotonic_ns() + kPatience;
  for (bool open = boxed_; open;) {
    const int64_t left = until - monotonic_ns();
    if (left <= 0 || !readable(output(), left)) return survives(ended);
    open = rest.read_from(output());
  }
  if (WIFSIGNALED(status)) return Exit{true, WTERMSIG(status)};
  const int code = WEXITSTATUS(status);
  // bwrap exits as a shell does: with 128 plus the number of the signal that ended its program.
  return boxed_ && code > 128 ? Exit{true, code - 128} : Exit{false, code};
}

absl::StatusOr<Exit> Process::wait(int64_t deadline_ns, Drain& drain) {
  WL_CHECK(running(), "wait for a child that is not running");
  bool open = true;
  for (;;) {
    const int64_t left = deadline_ns - monotonic_ns();
    if (left <= 0) return absl::DeadlineExceededError("the process has not ended by its deadline");
    pollfd pollers[2] = {{exit_fd(), POLLIN, 0}, {open ? output() : -1, POLLIN, 0}};
    const auto ms = static_cast<int>(std::clamp<int64_t>((left + 999'999) / 1'000'000, 0, 60'000));
    if (poll(pollers, 2, ms) < 0 && errno != EINTR) return system_error("cannot wait for a child process");
    if (open && pollers[1].revents) open = drain.read_from(output());
    if (pollers[0].revents) break;
  }
  if (open) drain.read_from(output());
  return reap();
}

absl::StatusOr<Exit> Process::kill() {
  if (!running()) return Exit{};
  // The child of bwrap is the first process of the sandbox: when it is killed, Linux ends everything in the sandbox.
  // Killing only bwrap is not enough, although the first process is told to end with bwrap (--die-with-parent): it
  // leaves the process group of bwrap before it makes that request to Linux, and would survive a kill between the two.
  // bwrap is stopped first, so that it neither starts a first process nor reaps one, whose id could then belong to
  // another process.
  if (boxed_) {
    ::kill(-pid_, SIGSTOP);
    for (pid_t child : children_of(pid_)) ::kill(child, SIGKILL);
  }
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  // A process in an uninterruptible system call may survive SIGKILL; waiting for it without limit would block the
  // worker.
  if (exit_fd_.valid() && !readable(exit_fd(), kPatience)) {
    return survives(std::exchange(pid_, -1));
  }
  return reap();
}

}  // namespace wl

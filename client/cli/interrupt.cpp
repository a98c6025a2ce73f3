#include "client/cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "client/cli/exit_code.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

std::atomic<int> g_signals{0};
int g_pipe[2] = {-1, -1};

void on_signal(int) {
  int saved = errno;
  if (g_signals.fetch_add(1) > 0) _exit(kExitInterrupted);
  char byte = 's';
  (void)!::write(g_pipe[1], &byte, 1);
  errno = saved;
}

// The functions of all InterruptGuards that exist, and a thread that calls the newest guard's function. The signal
// handler wakes the thread through a pipe. The thread exists while there are guards.
class Signals {
 public:
  void add(const std::function<void()>* on_first) {
    const std::scoped_lock lock(mutex_);
    if (guards_.empty()) begin();
    guards_.push_back(on_first);
    if (g_signals > 0) (*on_first)();
  }

  void remove() {
    {
      const std::scoped_lock lock(mutex_);
      guards_.pop_back();
      if (!guards_.empty()) return;
    }
    end();
  }

 private:
  void begin() {
    WL_CHECK(::pipe2(g_pipe, O_CLOEXEC) == 0, "no pipe for signals: errno ", errno);
    g_signals = 0;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
    thread_ = std::thread([this] { serve(); });
  }

  void serve() {
    char byte = 0;
    while (::read(g_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (byte != 's') return;
    // The lock keeps the guard from being destroyed while its function runs.
    const std::scoped_lock lock(mutex_);
    if (!guards_.empty()) (*guards_.back())();
  }

  void end() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
    char byte = 'q';
    (void)!::write(g_pipe[1], &byte, 1);
    thread_.join();
    ::close(g_pipe[0]);
    ::close(g_pipe[1]);
  }

  std::mutex mutex_;  // guards the list of interrupt guards
  std::vector<const std::function<void()>*> guards_;
  std::thread thread_;
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

Signals& signals() {
  static Signals all;
  return all;
}

}  // namespace

InterruptGuard::InterruptGuard(std::function<void()> on_first) : on_first_(std::move(on_first)) {
  signals().add(&on_first_);
}

InterruptGuard::~InterruptGuard() {
  signals().remove();
}

bool InterruptGuard::interrupted() {
  return g_signals > 0;
}

}  // namespace wl

#include "client/cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

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

}  // namespace

struct InterruptGuard::Impl {
  std::thread thread;
  struct sigaction old_int {};
  struct sigaction old_term {};
};

InterruptGuard::InterruptGuard(std::function<void()> on_first) : impl_(new Impl) {
  WL_CHECK(::pipe2(g_pipe, O_CLOEXEC) == 0, "no pipe for signals: errno ", errno);
  g_signals = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &impl_->old_int);
  sigaction(SIGTERM, &action, &impl_->old_term);
  impl_->thread = std::thread([first = std::move(on_first)] {
    char byte = 0;
    while (::read(g_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (byte == 's') first();
  });
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &impl_->old_int, nullptr);
  sigaction(SIGTERM, &impl_->old_term, nullptr);
  char byte = 'q';
  (void)!::write(g_pipe[1], &byte, 1);
  impl_->thread.join();
  ::close(g_pipe[0]);
  ::close(g_pipe[1]);
  delete impl_;
}

bool InterruptGuard::interrupted() const {
  return g_signals > 0;
}

}  // namespace wl

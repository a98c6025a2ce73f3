#include "client/cli/top/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "compiler/base/status.h"

namespace wl {
namespace {

// Escape sequences of ECMA-48 and xterm for the alternate screen, the cursor, and the wrapping of long lines.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J", kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP};
constexpr char kWoken = 0;

int g_terminal_pipe[2] = {-1, -1};

void tell_terminal(int number) {
  const int saved = errno;
  const char byte = static_cast<char>(number);
  (void)!::write(g_terminal_pipe[1], &byte, 1);
  errno = saved;
}

// Writes to stdout. Returns false if that fails, since the terminal is gone.
bool write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd out = {STDOUT_FILENO, POLLOUT, 0};
      ::poll(&out, 1, -1);
      continue;
    }
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

winsize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) size = {24, 80, 0, 0};
  return size;
}

}  // namespace

struct Terminal::Impl {
  termios before{};
  bool keys = false;  // whether stdin is a terminal, from which keys are read
  bool lost = false;  // whether writing to stdout has failed
  struct sigaction old[std::size(kSignals)] = {};

  void enter() {
    if (keys) {
      termios raw = before;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays set, so Ctrl-C and Ctrl-Z still send signals
      raw.c_cc[VMIN] = 1;
      raw.c_cc[VTIME] = 0;
      ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    lost = !write_out(kEnter);
  }
  void leave() {
    (void)write_out(kLeave);
    if (keys) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
  }
  // Handles a byte that was read from the pipe: the number of a signal, or kWoken.
  Event on_signal(char number) {
    if (number == SIGTSTP) {
      leave();
      ::raise(SIGSTOP);
      // The program continues here after it was stopped, while the shell may have changed the terminal's settings.
      if (keys) ::tcgetattr(STDIN_FILENO, &before);
      enter();
    }
    return number == kWoken || number == SIGWINCH || number == SIGTSTP ? Event::kDraw : Event::kQuit;
  }
};

bool Terminal::here() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

Terminal::Terminal() : impl_(std::make_unique<Impl>()) {
  WL_CHECK(::pipe2(g_terminal_pipe, O_CLOEXEC | O_NONBLOCK) == 0, "no pipe for signals: errno ", errno);
  impl_->keys = ::tcgetattr(STDIN_FILENO, &impl_->before) == 0;
  struct sigaction action {};
  action.sa_handler = tell_terminal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &impl_->old[i]);
  impl_->enter();
}

Terminal::~Terminal() {
  impl_->leave();
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &impl_->old[i], nullptr);
  for (int& end : g_terminal_pipe) ::close(std::exchange(end, -1));
}

Terminal::Event Terminal::wait(std::chrono::milliseconds most) {
  if (impl_->lost) return Event::kQuit;
  pollfd sources[2] = {{g_terminal_pipe[0], POLLIN, 0}, {impl_->keys ? STDIN_FILENO : -1, POLLIN, 0}};
  if (::poll(sources, 2, static_cast<int>(most.count())) <= 0) return Event::kTime;
  char bytes[64];
  Event event = Event::kTime;
  if (sources[0].revents != 0) {
    const ssize_t n = ::read(g_terminal_pipe[0], bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; ++i) {
      const Event one = impl_->on_signal(bytes[i]);
      if (event != Event::kQuit && one != Event::kTime) event = one;
    }
  }
  if (sources[1].revents != 0) {
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return Event::kQuit;  // the terminal is gone
    bool other = false;
    for (ssize_t i = 0; i < n; ++i) {
      if (bytes[i] == 'q' || bytes[i] == 'Q' || bytes[i] == '\x03' || bytes[i] == '\x04') return Event::kQuit;
      if (bytes[i] == 'u' || bytes[i] == 'U' || bytes[i] == '\t') other = !other;
    }
    if (other && event != Event::kQuit) event = Event::kOther;
  }
  return event;
}

void Terminal::wake() {
  tell_terminal(kWoken);
}

int Terminal::rows() const {
  return size_of_terminal().ws_row;
}

int Terminal::columns() const {
  return size_of_terminal().ws_col;
}

void Terminal::draw(const std::vector<std::string>& lines) {
  std::string out = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) append(&out, i == 0 ? "" : "\r\n", lines[i], "\x1b[K");
  out += "\x1b[J";
  if (!write_out(out)) impl_->lost = true;
}

}  // namespace wl

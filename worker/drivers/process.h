// Child processes that can be shot. Each is the leader of a process group of its own; killing it kills the group, and
// no wait is without a deadline.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wl {

int64_t monotonic_ns();

// A file descriptor, closed on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Keeps the first bytes of what a child prints and throws the rest away, so that a flood neither blocks the child nor
// fills our memory.
class Drain {
 public:
  explicit Drain(size_t keep) : keep_(keep) {}
  // Reads what is there from a non-blocking descriptor; false at its end.
  bool read_from(int fd);
  const std::string& text() const { return text_; }

 private:
  size_t keep_;
  std::string text_;
};

struct Exit {
  bool signalled = false;
  int code = 0;  // exit status, or the signal's number
};
std::string describe(const Exit& exit);  // "killed by SIGSEGV", "exited with status 3"

class Process {
 public:
  struct Options {
    std::vector<std::string> arguments;  // [0] is the program, searched on PATH
    std::vector<std::string> environment;
    bool inherit_environment = false;
    std::string folder;  // working folder; empty = ours
    int pass_fd = -1;    // becomes descriptor 3 of the child
  };
  // Starts a child; its stdin is empty, its stdout and stderr are `output()`. NotFound when there is no such program.
  static absl::StatusOr<Process> start(const Options& options);

  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process() { (void)kill(); }

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int output() const { return output_.get(); }    // non-blocking
  int exit_fd() const { return exit_fd_.get(); }  // readable when the child has ended

  // How the child ended, its whole group then killed; DeadlineExceeded when it has not ended by `deadline_ns`
  // (monotonic clock). Drains the output meanwhile.
  absl::StatusOr<Exit> wait(int64_t deadline_ns, Drain& drain);
  // SIGKILL to the group, then waits up to 5 s. Unavailable when even that does not end it.
  absl::StatusOr<Exit> kill();

 private:
  Exit reap();

  pid_t pid_ = -1;
  Descriptor output_, exit_fd_;
};

}  // namespace wl

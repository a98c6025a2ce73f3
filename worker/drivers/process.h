// Child processes that can be killed. Each child leads its own process group, and killing the child kills the whole
// group. Every wait for a child has a deadline.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wl {

int64_t monotonic_ns();

// Returns the read end of a pipe whose write end only this process has, for all its life. A child that is given the
// read end (Process::Options::pass_fd) reads the end of the file when this process has ended, for whatever reason. -1:
// there are too many open files.
int life_of_this_process();

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

// Keeps the first bytes of a child's output and discards the rest, so that a flood of output neither blocks the child
// nor fills this process's memory.
class Drain {
 public:
  explicit Drain(size_t keep) : keep_(keep) {}
  // Reads the available bytes of a non-blocking descriptor. Returns false at the end of the file.
  bool read_from(int fd);
  const std::string& text() const { return text_; }

 private:
  size_t keep_;
  std::string text_;
};

struct Exit {
  bool signalled = false;
  int code = 0;  // exit status of the process, or the number of the signal that ended it
};
// Returns how a process ended, e.g. "killed by SIGSEGV" or "exited with status 3".
std::string describe(const Exit& exit);

class Process {
 public:
  struct Options {
    std::vector<std::string> arguments;  // the program, which is searched for on PATH, followed by its arguments
    std::vector<std::string> environment;
    bool inherit_environment = false;
    std::string folder;  // working folder of the child; empty: that of this process
    int pass_fd = -1;    // descriptor of this process that becomes number 3 in the child; -1: none
    bool boxed = false;  // whether the program is bwrap; its whole sandbox is then killed and waited for with it
  };
  // Starts a child with an empty stdin, and with stdout and stderr readable at output(). NotFound: there is no such
  // program. Unavailable: it cannot be started.
  static absl::StatusOr<Process> start(const Options& options);

  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process() { (void)kill(); }

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int output() const { return output_.get(); }  // returns the non-blocking descriptor of the child's stdout and stderr
  int exit_fd() const { return exit_fd_.get(); }  // returns the child's pidfd, readable once the child has ended

  // Whether a signal such as SIGSTOP has stopped the child, or a process of its sandbox, and nothing has continued it.
  bool stopped() const;
  // Waits for the end of the child, draining its output; then kills its group and returns how it ended.
  // DeadlineExceeded: it has not ended by `deadline_ns` (monotonic clock).
  absl::StatusOr<Exit> wait(int64_t deadline_ns, Drain& drain);
  // Sends SIGKILL to the child's process group and to its sandbox, if it has one, and waits up to 5 s for their end.
  // Unavailable: the child, or a process of its sandbox, survives.
  absl::StatusOr<Exit> kill();

 private:
  absl::StatusOr<Exit> reap();

  pid_t pid_ = -1;
  bool boxed_ = false;
  Descriptor output_, exit_fd_;
};

}  // namespace wl

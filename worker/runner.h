// The worker's side of a runner, the child process in which candidates run: starts it, sends one command at a time,
// kills it at the deadline, and reports how it ended. Everything that the runner sends is checked, and nothing that it
// does blocks or harms this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/drivers/bubblewrap.h"
#include "worker/drivers/frame.h"
#include "worker/drivers/messages.h"
#include "worker/drivers/process.h"

namespace wl {

class Runner {
 public:
  // Receives a log line without control characters, and the trace id of the job that it is about (empty: none).
  using Says = std::function<void(const std::string& text, const std::string& trace)>;
  struct Options {
    std::string program;  // path of the warploom-runner program
    // The name of the device, such as "cuda:0"; a runner without a device: "compile" or "describe".
    std::string device = "cpu";
    const std::atomic<bool>* cancel = nullptr;  // when set, calls end with Cancelled within a tenth of a second
    std::function<void()> alive = nullptr;      // is called when the runner reports progress
    Sandbox sandbox = Sandbox::kNone;
    std::vector<std::string> read = {};  // files and folders that the sandbox shows, in addition to those of the system
    Says says = {};                      // is called with the log lines of the runner
    bool libraries = false;              // whether candidates may call libraries; CPUs only
  };
  // Unavailable: the program cannot be started. The calling thread must outlive the runner: the system ends a runner
  // together with the thread that started it.
  static absl::StatusOr<Runner> start(const Options& options);

  // Each call sends one command and waits for its answer until `deadline_ns` (monotonic clock). After an error the
  // runner has ended, except after those of the last row:
  //
  //   DeadlineExceeded        it was killed at the deadline: the candidate's timeout, unless was_stopped()
  //   Aborted                 it crashed, exited or sent malformed frames: the candidate's runtime error
  //   Cancelled, Unavailable  the worker's error, not the candidate's
  //   others                  an answer of the runner itself, e.g. ResourceExhausted; it still runs
  absl::Status setup(const SetupCommand& command, int64_t deadline_ns);
  absl::Status load(const LoadCommand& command, int64_t deadline_ns);
  absl::Status assemble(const ChainCommand& command, int64_t deadline_ns);
  absl::StatusOr<CheckAnswer> check(const CheckCommand& command, int64_t deadline_ns);
  absl::StatusOr<PeekAnswer> peek(const PeekCommand& command, int64_t deadline_ns);
  absl::StatusOr<TimeAnswer> time(const TimeCommand& command, int64_t deadline_ns);
  // answers with measurements only if the runner has a device; otherwise shows only that the runner answers
  absl::StatusOr<CanaryAnswer> canary(int64_t deadline_ns);
  absl::StatusOr<CompileAnswer> compile(const CompileCommand& command, int64_t deadline_ns);
  absl::StatusOr<DescribeAnswer> describe(int64_t deadline_ns);

  // Sets another cancel flag and other callbacks for the calls that follow.
  void watch(const std::atomic<bool>* cancel, std::function<void()> alive, Says says) {
    options_.cancel = cancel;
    options_.alive = std::move(alive);
    options_.says = std::move(says);
  }
  bool running() const { return process_.running(); }
  pid_t pid() const { return process_.pid(); }
  // Whether the runner was killed before its deadline because a signal such as SIGSTOP had stopped it and nothing had
  // continued it. The signal came from outside or from the candidate itself.
  bool was_stopped() const { return was_stopped_; }
  // Returns the slot that the runner last reported as running; -1: none.
  int64_t last_slot() const { return last_slot_; }
  // Ends the runner and its process group. Unavailable: the runner survives SIGKILL.
  absl::Status stop();

 private:
  absl::StatusOr<std::string> call(FrameKind kind, std::string payload, int64_t deadline_ns);
  absl::StatusOr<Frame> await_answer(uint32_t request, int64_t deadline_ns);
  absl::Status gone(std::string_view why);
  void say(std::string_view text, const std::string& trace);

  Options options_;
  Process process_;
  Descriptor socket_;
  FrameReader reader_;
  Drain output_{4096};
  bool output_open_ = true;
  std::string trace_;  // trace id of the last setup command
  int says_left_ = 0;  // number of log lines that are accepted until the next setup command
  std::string fault_;  // message that the runner's signal handler sent, for example about a crash
  uint32_t request_ = 0;
  int64_t last_slot_ = -1;
  bool was_stopped_ = false;
};

}  // namespace wl

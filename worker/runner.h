// The worker's side of a runner: starts it, sends one command at a time, shoots it at the deadline, and says what
// became of it. Everything the runner sends is checked; nothing it does blocks or harms this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/drivers/frame.h"
#include "worker/drivers/messages.h"
#include "worker/drivers/process.h"

namespace wl {

class Runner {
 public:
  struct Options {
    std::string program;                        // path of warploom-runner
    std::string device = "cpu";                 // "cuda:0", "hip:1"; or "compile", "describe": no device at all
    const std::atomic<bool>* cancel = nullptr;  // set: calls end with Cancelled within a tenth of a second
    std::function<void()> alive;                // called when the runner gave a sign of life, and while waiting
  };
  // Unavailable when the program cannot be started. The calling thread must outlive the runner: the system ends the
  // runner with the thread that started it.
  static absl::StatusOr<Runner> start(const Options& options);

  // One command, by `deadline_ns` (monotonic clock). The runner is gone after any of these but the last:
  //   DeadlineExceeded  it was shot at the deadline          -> the candidate's timeout
  //   Aborted           it crashed, left early, or sent junk -> the candidate's runtime error; the message says which
  //   Cancelled, Unavailable                                 -> nobody's fault; the worker's trouble
  //   others            what the runner itself answered, e.g. ResourceExhausted; it still runs
  absl::Status setup(const SetupCommand& command, int64_t deadline_ns);
  absl::Status load(const LoadCommand& command, int64_t deadline_ns);
  absl::StatusOr<CheckAnswer> check(const CheckCommand& command, int64_t deadline_ns);
  absl::StatusOr<PeekAnswer> peek(const PeekCommand& command, int64_t deadline_ns);
  absl::StatusOr<TimeAnswer> time(const TimeCommand& command, int64_t deadline_ns);
  absl::StatusOr<CanaryAnswer> canary(int64_t deadline_ns);
  absl::StatusOr<CompileAnswer> compile(const CompileCommand& command, int64_t deadline_ns);
  absl::StatusOr<DescribeAnswer> describe(int64_t deadline_ns);

  // Another cancel and another listener for the calls that follow.
  void watch(const std::atomic<bool>* cancel, std::function<void()> alive) {
    options_.cancel = cancel;
    options_.alive = std::move(alive);
  }
  bool running() const { return process_.running(); }
  pid_t pid() const { return process_.pid(); }
  int64_t last_slot() const { return last_slot_; }  // the slot it last said it was running
  // Ends it and its process group. Unavailable when it survives SIGKILL.
  absl::Status stop();

 private:
  absl::StatusOr<std::string> call(FrameKind kind, std::string payload, int64_t deadline_ns);
  absl::StatusOr<Frame> await_answer(uint32_t request, int64_t deadline_ns);
  absl::Status gone(std::string_view why);

  Options options_;
  Process process_;
  Descriptor socket_;
  FrameReader reader_;
  Drain output_{4096};
  bool output_open_ = true;
  std::string fault_;  // what the runner's signal handler said
  uint32_t request_ = 0;
  int64_t last_slot_ = -1;
};

}  // namespace wl

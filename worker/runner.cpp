#include "worker/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "compiler/base/names.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr int64_t kSlice = 100'000'000;  // ns after which a poll ends at the latest, so that a cancel is noticed soon
constexpr size_t kMostSaid = 300;        // largest number of bytes of a log line; the rest is cut off
constexpr int kMostLines = 16;           // largest number of log lines that are accepted between two setups
// Nanoseconds for which a signal such as SIGSTOP may stop a runner before the runner is killed.
constexpr int64_t kLongestStop = 1'000'000'000;

// Returns the environment of runners for GPUs and compilers: the variables that drivers and compilers look for, except
// those that may change the code they make.
std::vector<std::string> device_environment() {
  std::vector<std::string> kept = {"CUDA_CACHE_DISABLE=1", "LC_ALL=C"};
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view entry = *line;
    for (std::string_view start :
         {"PATH=", "TMPDIR=", "LD_LIBRARY_PATH=", "CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "HIP_VISIBLE_DEVICES=",
          "ROCR_VISIBLE_DEVICES=", "GPU_DEVICE_ORDINAL=", "NVIDIA_", "WARPLOOM_FAKE_"})
      if (entry.starts_with(start)) kept.emplace_back(entry);
  }
  return kept;
}

template <typename Answer>
absl::StatusOr<Answer> parsed(const absl::StatusOr<std::string>& payload, const auto& gone) {
  if (!payload.ok()) return payload.status();
  absl::StatusOr<Answer> answer = unpack<Answer>(*payload);
  if (!answer.ok()) return gone("sent an answer that cannot be read");
  return answer;
}

}  // namespace

absl::StatusOr<Runner> Runner::start(const Options& options) {
  if (options.program.empty())
    return absl::UnavailableError("warploom-runner is missing; build or install it beside this program");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::UnavailableError(absl::StrCat("cannot make a socket pair: ", std::strerror(errno)));
  Runner runner;
  runner.options_ = options;
  runner.socket_ = Descriptor(ends[0]);
  Descriptor theirs(ends[1]);
  // dup2() of descriptor 3 onto itself would keep its close-on-exec flag, so another number is taken.
  if (theirs.get() == 3) {
    theirs = Descriptor(fcntl(theirs.get(), F_DUPFD_CLOEXEC, 4));
    if (!theirs.valid()) return absl::UnavailableError("too many open files");
  }
  Process::Options spawn;
  const bool boxed = options.sandbox == Sandbox::kBubblewrap, gpus = options.device != "cpu";
  // The first argument is the id of the runner's parent. Inside a sandbox, this is the sandbox's first process, whose
  // id is 1.
  spawn.arguments = {options.program, boxed ? "1" : absl::StrCat(getpid()), options.device};
  if (gpus) spawn.environment = device_environment();
  // LD_LIBRARY_PATH names folders in which the loader looks for libraries that candidates call. For GPUs,
  // device_environment() contains the variable already.
  const char* const folders = std::getenv("LD_LIBRARY_PATH");
  if (options.libraries && folders != nullptr) spawn.environment.push_back(absl::StrCat("LD_LIBRARY_PATH=", folders));
  spawn.pass_fd = theirs.get();
  if (boxed) {
    std::erase_if(spawn.environment, [](const std::string& entry) { return entry.starts_with("TMPDIR="); });
    Box box;
    box.read = options.read;
    box.read.push_back(std::filesystem::absolute(options.program).string());
    // These files tell the runner which CPUs share a core, which it needs for pinning threads.
    box.read.emplace_back("/sys/devices/system/cpu");
    box.processes = true;
    box.gpus = gpus;
    if (gpus) box.tmp_bytes = int64_t{1} << 30;
    put_in(box, spawn);
  }
  absl::StatusOr<Process> process = Process::start(spawn);
  if (!process.ok()) return absl::UnavailableError(process.status().message());
  runner.process_ = std::move(*process);
  return runner;
}

absl::Status Runner::stop() {
  if (!process_.running()) return absl::OkStatus();
  return process_.kill().status();
}

// Called when the runner has ended or must end. Kills the rest of its processes and returns an Aborted error that says
// how it ended. `why`: what the runner did wrong; empty: it closed its socket.
absl::Status Runner::gone(std::string_view why) {
  std::string text(why);
  // A process that is already exiting gets a second to report its status before it is killed.
  absl::StatusOr<Exit> exit = text.empty() ? process_.wait(monotonic_ns() + 1'000'000'000, output_) : process_.kill();
  if (text.empty() && !exit.ok()) {
    text = "closed its channel";
    exit = process_.kill();
  }
  WL_RETURN_IF_ERROR(exit.status());
  if (text.empty()) text = wl::describe(*exit);
  if (!fault_.empty()) absl::StrAppend(&text, "; ", fault_);
  if (output_open_ && process_.output() >= 0) output_open_ = output_.read_from(process_.output());
  const std::string output(absl::StripAsciiWhitespace(output_.text()).substr(0, 300));
  if (!output.empty()) absl::StrAppend(&text, "; its output: ", output);
  return absl::AbortedError(absl::StrCat("the kernel's process ", text));
}

// Passes a log line on. Its text may come from a candidate, so length, characters and number of lines are limited.
void Runner::say(std::string_view text, const std::string& trace) {
  if (!options_.says || says_left_ <= 0) return;
  --says_left_;
  options_.says(fitted(text, TextKind::kName, kMostSaid),
                check_text("", trace, TextKind::kTrace, kMostSaid).ok() ? trace : "");
}

absl::StatusOr<Frame> Runner::await_answer(uint32_t request, int64_t deadline_ns) {
  char block[65536];
  // Time in ns at which the runner was last seen running, and not stopped by a signal.
  int64_t went_on = monotonic_ns();
  for (;;) {
    absl::StatusOr<Frame> frame = reader_.next();
    if (absl::IsDataLoss(frame.status())) return gone("wrote junk into its channel");
    if (frame.ok()) {
      if (frame->request != request) return gone("answered a command that was not sent");
      if (frame->kind == FrameKind::kDone || frame->kind == FrameKind::kFailed) return frame;
      if (frame->kind == FrameKind::kFault) {
        fault_ = frame->payload.substr(0, 300);
        say(fault_, trace_);
        continue;
      }
      if (frame->kind == FrameKind::kLog) {
        const absl::StatusOr<LogNote> note = unpack<LogNote>(frame->payload);
        if (!note.ok()) return gone("wrote junk into its channel");
        say(note->text, note->trace);
        continue;
      }
      absl::StatusOr<ProgressNote> note = unpack<ProgressNote>(frame->payload);
      if (frame->kind != FrameKind::kProgress || !note.ok()) return gone("wrote junk into its channel");
      last_slot_ = note->slot;
      if (options_.alive) options_.alive();
      continue;
    }
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) {
      WL_RETURN_IF_ERROR(stop());
      return absl::CancelledError("cancelled");
    }
    const int64_t now = monotonic_ns();
    const int64_t left = deadline_ns - now;
    if (!process_.stopped()) went_on = now;
    if (now - went_on > kLongestStop) {
      was_stopped_ = true;
      WL_RETURN_IF_ERROR(stop());
      return absl::DeadlineExceededError("the kernel's process was stopped by a signal and was killed");
    }
    if (left <= 0) {
      WL_RETURN_IF_ERROR(stop());
      return absl::DeadlineExceededError("the kernel's process was still busy at the deadline and was killed");
    }
    pollfd pollers[3] = {{socket_.get(), POLLIN, 0},
                         {process_.exit_fd(), POLLIN, 0},
                         {output_open_ ? process_.output() : -1, POLLIN, 0}};
    const auto ms = static_cast<int>((std::min(left, kSlice) + 999'999) / 1'000'000);
    poll(pollers, 3, ms);
    if (pollers[2].revents) output_open_ = output_.read_from(process_.output());
    if (pollers[0].revents) {
      const ssize_t n = recv(socket_.get(), block, sizeof block, MSG_DONTWAIT);
      if (n > 0) {
        reader_.append(block, static_cast<size_t>(n));
        continue;
      }
      if (n == 0) return gone("");
      if (errno != EAGAIN && errno != EINTR) return gone("");
    }
    // The socket has no more data and the runner has ended. recv() may not report that end, because a process that the
    // runner forked may still hold the other end of the socket open.
    if (pollers[1].revents && !pollers[0].revents) return gone("");
  }
}

absl::StatusOr<std::string> Runner::call(FrameKind kind, std::string payload, int64_t deadline_ns) {
  WL_CHECK(running(), "a command for a runner that has ended");
  const uint32_t request = ++request_;
  // The runner always reads while it waits for a command, so a failed send means that it has ended.
  if (!send_frame(socket_.get(), {kind, request, std::move(payload)}).ok()) return gone("");
  WL_ASSIGN_OR_RETURN(const Frame frame, await_answer(request, deadline_ns));
  if (frame.kind == FrameKind::kDone) return frame.payload;
  Unpacker in(frame.payload);
  const auto code = static_cast<absl::StatusCode>(in.integer());
  const std::string message = in.text();
  // The runner may send only codes after which it still runs (see runner.h).
  if (!in.complete() || code == absl::StatusCode::kOk || code == absl::StatusCode::kAborted ||
      code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kCancelled ||
      code == absl::StatusCode::kUnavailable)
    return gone("sent a failure that cannot be read");
  return absl::Status(code, message);
}

absl::Status Runner::setup(const SetupCommand& command, int64_t deadline_ns) {
  trace_ = command.trace;
  says_left_ = kMostLines;
  return call(FrameKind::kSetup, pack(command), deadline_ns).status();
}

absl::Status Runner::load(const LoadCommand& command, int64_t deadline_ns) {
  return call(FrameKind::kLoad, pack(command), deadline_ns).status();
}

absl::Status Runner::assemble(const ChainCommand& command, int64_t deadline_ns) {
  return call(FrameKind::kChain, pack(command), deadline_ns).status();
}

absl::StatusOr<CheckAnswer> Runner::check(const CheckCommand& command, int64_t deadline_ns) {
  return parsed<CheckAnswer>(call(FrameKind::kCheck, pack(command), deadline_ns),
                             [&](const char* why) { return gone(why); });
}

absl::StatusOr<PeekAnswer> Runner::peek(const PeekCommand& command, int64_t deadline_ns) {
  absl::StatusOr<PeekAnswer> answer = parsed<PeekAnswer>(call(FrameKind::kPeek, pack(command), deadline_ns),
                                                         [&](const char* why) { return gone(why); });
  if (answer.ok() && answer->values.size() != command.places.size()) return gone("sent too few values");
  return answer;
}

absl::StatusOr<TimeAnswer> Runner::time(const TimeCommand& command, int64_t deadline_ns) {
  absl::StatusOr<TimeAnswer> answer = parsed<TimeAnswer>(call(FrameKind::kTime, pack(command), deadline_ns),
                                                         [&](const char* why) { return gone(why); });
  if (answer.ok() && answer->slots.size() != command.slots.size()) return gone("sent too few timings");
  return answer;
}

absl::StatusOr<CanaryAnswer> Runner::canary(int64_t deadline_ns) {
  return parsed<CanaryAnswer>(call(FrameKind::kCanary, "", deadline_ns), [&](const char* why) { return gone(why); });
}

absl::StatusOr<CompileAnswer> Runner::compile(const CompileCommand& command, int64_t deadline_ns) {
  absl::StatusOr<CompileAnswer> answer = parsed<CompileAnswer>(call(FrameKind::kCompile, pack(command), deadline_ns),
                                                               [&](const char* why) { return gone(why); });
  if (answer.ok() && answer->kernels.size() != command.sources.size()) return gone("sent too few kernels");
  return answer;
}

absl::StatusOr<DescribeAnswer> Runner::describe(int64_t deadline_ns) {
  return parsed<DescribeAnswer>(call(FrameKind::kDescribe, "", deadline_ns),
                                [&](const char* why) { return gone(why); });
}

}  // namespace wl

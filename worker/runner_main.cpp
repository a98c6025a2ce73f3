// warploom-runner executes candidates for a worker. It serves one command after the other over the socket that it
// inherits as descriptor 3. Whatever a candidate does to this process costs one failed trial, and the worker starts
// another runner. Only a worker starts it.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/drivers/frame.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/gpu/describe.h"
#include "worker/drivers/process.h"
#include "worker/drivers/sandbox.h"
#include "worker/drivers/session.h"

namespace wl {
namespace {

constexpr int kSocket = 3;
constexpr const char* kOwnFolder = "/tmp";  // the writable folder of a runner in a sandbox
constexpr int64_t kNoteEvery = 50'000'000;  // least ns between two progress reports about the same slot

uint32_t current_request = 0;
std::string current_trace;
const Session* current_session = nullptr;

// Signal handler: reports which argument a kernel accessed when it crashed, then lets the signal kill the process. Not
// instrumented for "vptr": UndefinedBehaviorSanitizer inspects an object's type by system calls that a runner is not
// allowed to make.
[[gnu::no_sanitize("vptr")]] void report_fault(int number, siginfo_t* info, void*) {
  signal(number, SIG_DFL);
  char place[200] = "";
  if (current_session && (number == SIGSEGV || number == SIGBUS))
    current_session->describe_address(info->si_addr, place, sizeof place);
  char frame[kFrameHeader + 256];
  const char* name = sigabbrev_np(number);
  const int size = std::snprintf(frame + kFrameHeader, 256, "SIG%s%s", name ? name : "?", place);
  const uint32_t length = static_cast<uint32_t>(kFrameHeader - 4) + static_cast<uint32_t>(size);
  std::memcpy(frame, &length, 4);
  frame[4] = static_cast<char>(FrameKind::kFault);
  std::memcpy(frame + 5, &current_request, 4);
  (void)send(kSocket, frame, 4 + length, MSG_NOSIGNAL);
  raise(number);
}

void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = report_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

void send_or_leave(const Frame& frame) {
  if (!send_frame(kSocket, frame).ok()) _exit(0);  // sending fails only when the worker has ended
}

// Sends a line for the worker's log.
void say(std::string text) {
  send_or_leave({FrameKind::kLog, current_request, pack(LogNote{std::move(text), current_trace})});
}

template <typename Command, typename F>
absl::StatusOr<std::string> answer(const Frame& frame, F&& f) {
  absl::StatusOr<Command> command = unpack<Command>(frame.payload);
  if (!command.ok()) return command.status();
  return f(*command);
}

absl::StatusOr<std::string> done(const absl::Status& status) {
  if (!status.ok()) return status;
  return "";
}
template <typename Answer>
absl::StatusOr<std::string> done(const absl::StatusOr<Answer>& result) {
  if (!result.ok()) return result.status();
  return pack(*result);
}

absl::StatusOr<std::string> compile(const CompileCommand& command) {
  if (command.sources.empty()) return absl::InvalidArgumentError("nothing to compile");
  const bool own = command.folder.empty();
  absl::StatusOr<GpuUnit> unit = compile_gpu(command.sources, own ? kOwnFolder : command.folder);
  std::error_code ignored;
  for (auto at = std::filesystem::directory_iterator(kOwnFolder, ignored); own && at != end(at); at.increment(ignored))
    std::filesystem::remove_all(at->path(), ignored);
  // Unavailable means that this process has failed, not the compiler. The worker would take this code as the end of the
  // runner, so another one is sent.
  if (absl::IsUnavailable(unit.status())) return absl::FailedPreconditionError(unit.status().message());
  if (!unit.ok()) return unit.status();
  CompileAnswer answer{std::move(unit->binary), {}, unit->seconds};
  for (GpuCode& code : unit->kernels) answer.kernels.push_back(std::move(code));
  return pack(answer);
}

// Serves a command in a runner without a device ("compile" or "describe").
absl::StatusOr<std::string> serve_tools(const Frame& frame) {
  if (frame.kind == FrameKind::kCompile) return answer<CompileCommand>(frame, compile);
  if (frame.kind == FrameKind::kDescribe) return pack(describe_gpus());
  if (frame.kind == FrameKind::kCanary) return pack(CanaryAnswer());
  return absl::InvalidArgumentError("not a command of a runner without a device");
}

absl::StatusOr<std::string> set_up(Session& session, const SetupCommand& command) {
  current_trace = command.trace;
  const absl::Status status = session.setup(command);
  say(absl::StrCat("set up; arguments: ", command.buffers.size(), ", seed: ", command.seed,
                   ", threads: ", command.threads, status.ok() ? "" : ", error: ", std::string(status.message())));
  return done(status);
}

absl::StatusOr<std::string> execute(Session& session, const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kSetup:
      return answer<SetupCommand>(frame, [&](const SetupCommand& c) { return set_up(session, c); });
    case FrameKind::kLoad:
      return answer<LoadCommand>(frame, [&](const LoadCommand& c) { return done(session.load(c)); });
    case FrameKind::kChain:
      return answer<ChainCommand>(frame, [&](const ChainCommand& c) { return done(session.assemble(c)); });
    case FrameKind::kCheck:
      return answer<CheckCommand>(frame, [&](const CheckCommand& c) { return done(session.check(c)); });
    case FrameKind::kPeek:
      return answer<PeekCommand>(frame, [&](const PeekCommand& c) { return done(session.peek(c)); });
    case FrameKind::kTime:
      return answer<TimeCommand>(frame, [&](const TimeCommand& c) { return done(session.time(c)); });
    case FrameKind::kCanary:
      return done(session.canary());
    default:
      return absl::InvalidArgumentError("not a command");
  }
}

[[noreturn]] void serve(const std::string& device) {
  int64_t last_note = 0, notes = 0;
  const bool tools = device == "compile" || device == "describe";
  const Session::Alive alive = [&](int64_t slot) {
    const int64_t now = monotonic_ns();
    ++notes;
    if (now - last_note < kNoteEvery && slot < 0) return;
    static int64_t last_slot = -1;
    if (now - last_note < kNoteEvery && slot == last_slot) return;
    last_note = now;
    last_slot = slot;
    send_or_leave({FrameKind::kProgress, current_request, pack(ProgressNote{slot, notes})});
  };
  // The session is opened at the first command and not before, since a driver may hang and only commands have a
  // deadline. Until then, `session` is an UnknownError.
  absl::StatusOr<std::unique_ptr<Session>> session = absl::UnknownError("");
  catch_faults();
  FrameReader reader;
  char block[65536];
  for (;;) {
    absl::StatusOr<Frame> frame = reader.next();
    if (absl::IsNotFound(frame.status())) {
      const ssize_t n = recv(kSocket, block, sizeof block, 0);
      if (n <= 0) _exit(0);
      reader.append(block, static_cast<size_t>(n));
      continue;
    }
    if (!frame.ok()) _exit(2);
    current_request = frame->request;
    if (!tools && absl::IsUnknown(session.status())) {
      session = open_session(device, alive);
      if (session.ok()) current_session = session->get();
    }
    const absl::StatusOr<std::string> result = tools          ? serve_tools(*frame)
                                               : session.ok() ? execute(**session, *frame)
                                                              : session.status();
    if (result.ok()) {
      send_or_leave({FrameKind::kDone, frame->request, *result});
    } else {
      Packer packer;
      packer.integer(static_cast<int64_t>(result.status().code()))
          .text(std::string(result.status().message().data(), result.status().message().size()));
      send_or_leave({FrameKind::kFailed, frame->request, packer.take()});
    }
  }
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "warploom-runner is started by warploom-worker; it is not meant to be started by hand\n");
    return 1;
  }
  const std::string device = argv[2];
  // Compilers that this process starts must not inherit the socket to the worker.
  (void)fcntl(wl::kSocket, F_SETFD, FD_CLOEXEC);
  wl::enter_sandbox(static_cast<pid_t>(std::atol(argv[1])), device == "cpu");
  wl::serve(device);
}

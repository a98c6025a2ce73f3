#include "worker/compile_pool.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/base/sha256.h"
#include "compiler/base/status.h"
#include "worker/drivers/files.h"
#include "worker/drivers/gpu/code_judge.h"
#include "worker/runner.h"

namespace wl {
namespace {

constexpr int64_t kStartDeadline = 30'000'000'000;  // ns that a compiler process may take to start

}  // namespace

// The state of one compile(). The pool's mutex guards everything in it that is not constant.
struct CompilePool::Call {
  const std::vector<Candidate>& candidates;
  const CodeLimits& limits;
  const CompileOptions& options;
  std::vector<Compiled> results;
  std::vector<Unit> queue;
  size_t left = 0;  // number of different candidates that are not finished; equal candidates count once
  size_t running = 0;
  std::set<std::string> written;  // digests of the objects that were written to the folder
  absl::Status failure;
};

CompilePool::CompilePool(std::string runner, int jobs, Sandbox sandbox)
    : program_(std::move(runner)), jobs_(std::max(1, jobs)), sandbox_(sandbox) {}

CompilePool::~CompilePool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  cancel_ = true;
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<std::vector<Compiled>> CompilePool::compile(const std::vector<Candidate>& candidates,
                                                           const CodeLimits& limits, const CompileOptions& options) {
  Call call{candidates, limits, options, std::vector<Compiled>(candidates.size()), {}, 0, 0, {}, {}};
  std::vector<size_t> twin(candidates.size());
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, size_t> seen;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<size_t>> groups;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Source& source = candidates[i].source;
    const auto [at, fresh] = seen.try_emplace({source.target, source.prelude, source.text}, i);
    twin[i] = at->second;
    if (fresh) groups[{source.target, source.prelude}].push_back(i);
  }
  for (const auto& [key, members] : groups) {
    // hipRTC and clang compile one kernel per translation unit, and library calls are not compiled. Translation units
    // for NVRTC have equal numbers of kernels. There is at least one unit for each process if there are enough kernels.
    const bool together = key.first.starts_with("cuda:") && candidates[members[0]].source.library.empty();
    const size_t most = together ? static_cast<size_t>(std::max(1, options.unit)) : 1;
    const size_t units = std::max((members.size() + most - 1) / most,
                                  std::min(members.size(), static_cast<size_t>(most == 1 ? 1 : jobs_)));
    for (size_t u = 0; u < units; ++u) {
      Unit unit;
      for (size_t m = u * members.size() / units; m < (u + 1) * members.size() / units; ++m)
        unit.members.push_back(members[m]);
      call.left += unit.members.size();
      call.queue.push_back(std::move(unit));
    }
  }
  std::unique_lock lock(mutex_);
  call_ = &call;
  cancel_ = false;
  while (threads_.size() < std::min<size_t>(static_cast<size_t>(jobs_), call.queue.size()))
    threads_.emplace_back([this] { work(); });
  changed_.notify_all();
  const size_t total = call.left;
  while (call.running > 0 || (!call.queue.empty() && call.failure.ok() && !cancel_)) {
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) cancel_ = true;
    const size_t done = total - call.left;
    lock.unlock();
    if (options.progress) options.progress(static_cast<int>(done));
    lock.lock();
  }
  call_ = nullptr;
  WL_RETURN_IF_ERROR(call.failure);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (twin[i] == i) continue;
    call.results[i] = call.results[twin[i]];
    call.results[i].seconds = 0;
  }
  return std::move(call.results);
}

// The main function of a compiling thread. Each thread has its own runner, since the system ends a runner together with
// the thread that started it.
void CompilePool::work() {
  Runner runner;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      return closing_ || (call_ != nullptr && !call_->queue.empty() && call_->failure.ok() && !cancel_);
    });
    if (closing_) return;
    Call& call = *call_;
    const Unit unit = std::move(call.queue.back());
    call.queue.pop_back();
    ++call.running;
    lock.unlock();
    finish(call, unit, runner);
    lock.lock();
    --call.running;
    changed_.notify_all();
  }
}

// Starts the thread's runner if it is not running. A runner that does not answer is reported as Unavailable, so that no
// candidate is blamed.
absl::Status CompilePool::provide(Runner& runner) {
  if (runner.running()) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(runner, Runner::start({program_, "compile", &cancel_, nullptr, sandbox_}));
  const absl::Status there = runner.canary(monotonic_ns() + kStartDeadline).status();
  if (there.ok() || absl::IsCancelled(there)) return there;
  (void)runner.stop();
  return absl::UnavailableError(absl::StrCat("no process for compilers: ", std::string(there.message())));
}

void CompilePool::finish(Call& call, const Unit& unit, Runner& runner) {
  if (absl::Status ready = provide(runner); !ready.ok()) {
    const std::lock_guard lock(mutex_);
    if (!absl::IsCancelled(ready)) call.failure.Update(ready);
    return;
  }
  absl::StatusOr<CompileAnswer> answer = absl::UnavailableError("");
  CompileCommand command{sandbox_ == Sandbox::kBubblewrap ? "" : call.options.folder, {}};
  for (size_t member : unit.members) command.sources.push_back(call.candidates[member].source);
  answer = runner.compile(command, monotonic_ns() + call.options.deadline_ns);
  if (!answer.ok() && !absl::IsInvalidArgument(answer.status())) (void)runner.stop();

  std::string path;
  bool fresh = false;
  if (answer.ok()) {
    const std::string content = sha256_hex(answer->binary);
    path = absl::StrCat(call.options.folder, "/", content.substr(0, 32), ".bin");
    {
      const std::lock_guard lock(mutex_);
      fresh = call.written.insert(content).second;
    }
    if (const absl::Status written = fresh ? write_parts(path, {answer->binary}) : absl::OkStatus(); !written.ok())
      answer = written;
  }

  const std::lock_guard lock(mutex_);
  if (absl::IsUnavailable(answer.status())) {
    call.failure.Update(answer.status());
  } else if (answer.ok()) {
    for (size_t m = 0; m < unit.members.size(); ++m) {
      const size_t i = unit.members[m];
      const Candidate& candidate = call.candidates[i];
      CodeFacts code = answer->kernels[m];
      code.occupancy = occupancy_of(code, call.limits, candidate.source.threads);
      // The first candidate is the default schedule. It is rejected only if it cannot run, and not if its code looks
      // slow, since a group must have a kernel.
      std::string why = candidate.trial == 0 ? unfit_reason(code, call.limits, candidate.source)
                                             : reject_reason(code, call.limits, candidate.source);
      const Outcome outcome = why.empty() ? Outcome::kCorrect : Outcome::kRejected;
      call.results[i] = {outcome, std::move(why), path, answer->seconds / static_cast<double>(unit.members.size()),
                         code};
    }
    call.left -= unit.members.size();
  } else if (unit.members.size() > 1) {
    if (!cancel_)
      for (size_t member : unit.members) call.queue.push_back({{member}});
  } else {
    const bool late = absl::IsDeadlineExceeded(answer.status()), away = absl::IsFailedPrecondition(answer.status());
    call.results[unit.members[0]] = {absl::IsCancelled(answer.status()) || away ? Outcome::kRejected
                                     : late                                     ? Outcome::kTimeout
                                                                                : Outcome::kCompileError,
                                     std::string(answer.status().message()),
                                     "",
                                     0,
                                     {}};
    --call.left;
  }
}

}  // namespace wl

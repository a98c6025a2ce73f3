#include "worker/device_runner.h"

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr int kStopsAtSetup = 8;  // how many times in a row a runner may be stopped by a signal while it is set up
constexpr int64_t kSetupDeadline = 120'000'000'000, kHealthDeadline = 30'000'000'000;
// Largest number of batches that one runner of a CPU serves. The runner's limit of CPU time is fixed before its first
// candidate runs, and is large enough for this number of batches.
constexpr int kMostBatches = 16;

}  // namespace

void ReusedState::rest() {
  if (!home) return;
  runner = Runner();
  home.reset();
}

DeviceRunner::DeviceRunner(Runner::Options options, SetupCommand setup, ReusedState* state, std::string serves)
    : options_(std::move(options)), setup_(std::move(setup)), state_(state), serves_(std::move(serves)) {
  if (keeps()) setup_.cpu_s *= kMostBatches;
}

DeviceRunner::~DeviceRunner() {
  if (!keeps() || !runner_.running()) return;
  // The runner is kept longer than this measurement, so it must not use the measurement's cancel flag and callbacks any
  // more.
  runner_.watch(nullptr, nullptr, nullptr);
  state_->runner = std::move(runner_);
  state_->serves = serves_;
  state_->batches = served_ + 1;
}

absl::StatusOr<PrivateFolder> DeviceRunner::make_folder(const std::string& work_dir) {
  // a GPU's runner needs no common folder, since it gets its code over the socket
  if (is_gpu()) return PrivateFolder::make(work_dir);
  const bool goes_on =
      keeps() && state_->runner.running() && state_->serves == serves_ && state_->batches < kMostBatches;
  if (state_ != nullptr && !goes_on) state_->rest();
  if (keeps() && !goes_on) {
    WL_ASSIGN_OR_RETURN(PrivateFolder home, PrivateFolder::make(work_dir));
    state_->home.emplace(std::move(home));
  }
  WL_ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::make(keeps() ? state_->home->path() : work_dir));
  options_.read.push_back(keeps() ? state_->home->path() : folder.path());
  return folder;
}

absl::Status DeviceRunner::quarantine(const absl::Status& status) const {
  return absl::UnavailableError(
      absl::StrCat("device ", options_.device, " is quarantined: ", std::string(status.message())));
}

absl::Status DeviceRunner::start() {
  if (state_ != nullptr && state_->runner.running()) {
    Runner old = std::move(state_->runner);
    if (keeps() && state_->serves == serves_) {
      inherited_ = true;
      served_ = state_->batches;
      runner_ = std::move(old);
      runner_.watch(options_.cancel, options_.alive, options_.says);
      return absl::OkStatus();
    }
  }
  inherited_ = false;
  served_ = 0;
  WL_ASSIGN_OR_RETURN(runner_, Runner::start(options_));
  if (!is_gpu()) return absl::OkStatus();
  const absl::Status healthy = runner_.canary(monotonic_ns() + kHealthDeadline).status();
  if (healthy.ok() || absl::IsCancelled(healthy)) return healthy;
  (void)runner_.stop();
  return quarantine(healthy);
}

absl::Status DeviceRunner::ready(uint64_t seed) {
  if (runner_.running() && set_up_ && setup_.seed == seed) return absl::OkStatus();
  setup_.seed = seed;
  set_up_ = false;
  if (runner_.running()) {
    if (runner_.setup(setup_, monotonic_ns() + kSetupDeadline).ok()) {
      set_up_ = true;
      return absl::OkStatus();
    }
    if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed))
      return absl::CancelledError("cancelled");
    WL_RETURN_IF_ERROR(retire());  // earlier candidates may have damaged the runner, so it is replaced by a fresh one
  }
  loaded_.clear();
  canary.reset();
  // Failures of two kinds are not counted: those of a runner that candidates of an earlier batch may have damaged; and
  // those of a runner that a signal stopped, since no candidate of this batch is loaded yet that could have sent the
  // signal.
  int excuses = kStopsAtSetup;
  for (;;) {
    WL_RETURN_IF_ERROR(start());
    const absl::Status status = runner_.setup(setup_, monotonic_ns() + kSetupDeadline);
    set_up_ = status.ok();
    if (status.ok() || absl::IsCancelled(status)) return status;
    WL_RETURN_IF_ERROR(retire());
    if (inherited_ || (runner_.was_stopped() && excuses-- > 0)) continue;
    return absl::Status(
        absl::IsResourceExhausted(status) ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
        absl::StrCat("cannot set up the buffers of the problem: ", std::string(status.message())));
  }
}

absl::Status DeviceRunner::load(size_t i, LoadCommand command, int64_t deadline_ns) {
  if (loaded_.contains(i)) return absl::OkStatus();
  WL_RETURN_IF_ERROR(runner_.load(command, deadline_ns));
  loaded_.insert(i);
  return absl::OkStatus();
}

absl::Status DeviceRunner::retire() {
  canary.reset();
  loaded_.clear();
  set_up_ = false;
  const absl::Status stopped = runner_.stop();
  // A GPU's runner that survives SIGKILL hangs in the driver, where the next runner would hang as well.
  return stopped.ok() || !is_gpu() ? stopped : quarantine(stopped);
}

}  // namespace wl

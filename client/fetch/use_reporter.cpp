#include "client/fetch/use_reporter.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace wl {
namespace {

constexpr std::chrono::milliseconds kPatience{10'000}, kLastPatience{1'000};
// The time in which a coordinator that does not take uses is told nothing.
constexpr auto kRefusedFor = std::chrono::hours(1);
// The largest numbers of calls and of nanoseconds of one message (proto/limits.cpp).
constexpr int64_t kMost = 1'000'000'000'000'000;

// Whether the coordinator has surely not counted what it was told, so that it may be told again.
bool may_repeat(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnauthenticated(status) || absl::IsResourceExhausted(status);
}

}  // namespace

// What the thread uses. It lives on the heap, since a process that a fork made must neither join the thread of its
// parent nor destroy what that thread waits for.
struct UseReporter::Running {
  Running(Tell tell, std::chrono::milliseconds every) : tell_(std::move(tell)), every_(every) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }

  void serve(const std::stop_token& stop) {
    std::chrono::milliseconds wait = every_ * (std::random_device()() % 50 + 50) / 100;
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        stopped_.wait_for(lock, stop, std::exchange(wait, every_), [] { return false; });
      }
      if (!stop.stop_requested()) try_to_tell(kPatience, stop);
    }
    try_to_tell(kLastPatience, {});
  }

  void try_to_tell(std::chrono::milliseconds patience, std::stop_token stop) {
    try {
      tell(patience, std::move(stop));
    } catch (const std::exception&) {
      untold_.clear();  // memory is short
    }
  }

  void tell(std::chrono::milliseconds patience, std::stop_token stop) {
    collect();
    if (untold_.empty() || std::chrono::steady_clock::now() < again_) return untold_.clear();
    std::vector<KernelUse> uses;
    for (const auto& [key, use] : untold_) uses.push_back(use);
    const absl::Status told = tell_(uses, patience, std::move(stop));
    // An older coordinator has no such call, and another may not allow it to this caller.
    if (absl::IsUnimplemented(told) || absl::IsPermissionDenied(told) || absl::IsFailedPrecondition(told))
      again_ = std::chrono::steady_clock::now() + kRefusedFor;
    if (!may_repeat(told)) untold_.clear();
  }

  // Moves what meters have counted to untold_, and forgets meters of programs that are gone.
  void collect() {
    const std::lock_guard lock(mutex_);
    std::erase_if(meters_, [this](const std::shared_ptr<UseMeter>& meter) {
      // Whether the meter is only held here must be known before its counts are taken.
      const bool last = meter.use_count() == 1;
      // Ending another reference acquires what those wrote that have ended theirs.
      std::shared_ptr<UseMeter>(meter).reset();
      for (KernelUse& use : meter->take()) {
        KernelUse& sum = untold_[use.key];
        sum.calls = std::min(sum.calls + use.calls, kMost);
        sum.ns = std::min(sum.ns + use.ns, kMost);
        sum.key = std::move(use.key);
      }
      return last;
    });
  }

  const Tell tell_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;  // guards meters_
  std::condition_variable_any stopped_;
  std::vector<std::shared_ptr<UseMeter>> meters_;
  // Used by the thread only: what the coordinator was not told yet, by key, and when it may be told again.
  std::map<std::string, KernelUse> untold_;
  std::chrono::steady_clock::time_point again_;
  std::jthread thread_;  // declared last, so that it ends before the other members are destroyed
};

UseReporter::UseReporter(Tell tell, std::chrono::milliseconds every) : tell_(std::move(tell)), every_(every) {}

UseReporter::~UseReporter() {
  stop();
}

void UseReporter::add(std::shared_ptr<UseMeter> meter) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  try {
    if (process_ != ::getpid()) {
      (void)running_.release();  // of the parent
      process_ = ::getpid();
    }
    if (!running_) running_ = std::make_unique<Running>(tell_, every_);
    const std::lock_guard running(running_->mutex_);
    running_->meters_.push_back(std::move(meter));
  } catch (const std::exception&) {
    // There is no thread or no memory; the next program may find some.
  }
}

void UseReporter::stop() {
  std::unique_ptr<Running> running;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (process_ != ::getpid()) (void)running_.release();
    running = std::move(running_);
  }
}

}  // namespace wl

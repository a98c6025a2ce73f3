#include "client/fetch/use_reporter.h"

#include <utility>

namespace wl {
namespace {

constexpr std::chrono::milliseconds kPatience{10'000}, kLastPatience{1'000};

}  // namespace

UseReporter::~UseReporter() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void UseReporter::add(std::shared_ptr<UseMeter> meter) {
  const std::lock_guard lock(mutex_);
  meters_.push_back(std::move(meter));
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

void UseReporter::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, stop, every_, [] { return false; });
    }
    if (!stop.stop_requested()) tell(kPatience, stop);
  }
  tell(kLastPatience, {});
}

// Moves what meters have counted to untold_, and forgets meters of programs that are gone.
void UseReporter::collect() {
  const std::lock_guard lock(mutex_);
  std::erase_if(meters_, [this](const std::shared_ptr<UseMeter>& meter) {
    // Whether the meter is only held here must be known before its counts are taken.
    const bool last = meter.use_count() == 1;
    for (KernelUse& use : meter->take()) {
      KernelUse& sum = untold_[use.key];
      sum.calls += use.calls;
      sum.ns += use.ns;
      sum.key = std::move(use.key);
    }
    return last;
  });
}

void UseReporter::tell(std::chrono::milliseconds patience, std::stop_token stop) {
  collect();
  if (untold_.empty() || refused_) return untold_.clear();
  std::vector<KernelUse> uses;
  for (const auto& [key, use] : untold_) uses.push_back(use);
  const absl::Status told = tell_(uses, patience, std::move(stop));
  // An older coordinator has no such call, and another may not allow it to this caller.
  refused_ = absl::IsUnimplemented(told) || absl::IsPermissionDenied(told) || absl::IsFailedPrecondition(told);
  if (told.ok()) untold_.clear();
}

}  // namespace wl

#include "server/services/open_calls.h"

#include <chrono>
#include <utility>
#include <vector>

namespace wl {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(500);

}  // namespace

OpenCalls::~OpenCalls() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<OpenCalls::Held> OpenCalls::hold(Check check, End end) {
  auto entry = std::make_shared<Entry>();
  entry->check = std::move(check);
  entry->end = std::move(end);
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { look(); });
  entries_.push_back(std::move(entry));
  return std::make_unique<Held>(this, std::prev(entries_.end()));
}

OpenCalls::Held::~Held() {
  const std::shared_ptr<Entry> entry = *at_;
  {
    const std::lock_guard lock(of_->mutex_);
    of_->entries_.erase(at_);
  }
  const std::lock_guard lock(entry->mutex);
  entry->end = nullptr;
}

void OpenCalls::look() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kAskAgain, [this] { return stopping_; })) {
    const std::vector<std::shared_ptr<Entry>> now(entries_.begin(), entries_.end());
    lock.unlock();
    for (const std::shared_ptr<Entry>& entry : now) {
      const absl::Status status = entry->check();
      if (status.ok()) continue;
      const std::lock_guard alone(entry->mutex);
      // `end` is moved out of the entry before it is called, because it may destroy the Held, whose destructor deletes
      // the entry's `end`.
      if (const End end = std::exchange(entry->end, nullptr)) end(status);
    }
    lock.lock();
  }
}

}  // namespace wl

#include "server/services/work_pool.h"

namespace wl {

void WorkPool::start() {
  for (int i = 0; i < count_; ++i) threads_.emplace_back([this] { serve(); });
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queued_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::post(std::function<void()> work, const std::string& caller) {
  {
    const std::lock_guard lock(mutex_);
    if (turns_.size() >= max_queued_) return false;
    // A named caller gets at most a quarter of the queue, so that room is left for others.
    if (!caller.empty() && turns_.size_of(caller) >= max_queued_ / 4) return false;
    turns_.push(std::move(work), caller);
  }
  queued_.notify_one();
  return true;
}

void WorkPool::serve() {
  give_way(nice_);
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [&] { return stopping_ || !turns_.empty(); });
    if (turns_.empty()) return;
    std::function<void()> work = turns_.pop();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

absl::Status no_memory() {
  return absl::ResourceExhaustedError(
      "the coordinator has not enough memory for this call: ask for less at once, or again later");
}

grpc::Status too_busy() {
  return {grpc::StatusCode::UNAVAILABLE, "the coordinator has too many calls to answer; call again in a second"};
}

}  // namespace wl

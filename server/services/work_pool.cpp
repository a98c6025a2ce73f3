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

bool WorkPool::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (work_.size() >= max_queued_) return false;
    work_.push_back(std::move(work));
  }
  queued_.notify_one();
  return true;
}

void WorkPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [&] { return stopping_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

grpc::Status too_busy() {
  return {grpc::StatusCode::UNAVAILABLE, "the coordinator has too many calls to answer; call again in a second"};
}

}  // namespace wl

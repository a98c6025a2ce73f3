#include "server/services/work_pool.h"

#include <sys/resource.h>
#include <unistd.h>

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
    if (count_queued_ >= max_queued_) return false;
    const auto queue = work_.find(caller);
    // Those who have a name leave room for others.
    if (queue != work_.end() && !caller.empty() && queue->second.size() >= max_queued_ / 4) return false;
    if (queue == work_.end()) turns_.push_back(caller);
    work_[caller].push_back(std::move(work));
    ++count_queued_;
  }
  queued_.notify_one();
  return true;
}

void WorkPool::serve() {
  // Of this thread alone, on Linux. Where it cannot be set, all give way to each other as they do otherwise.
  if (nice_ != 0) (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_);
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [&] { return stopping_ || !turns_.empty(); });
    if (turns_.empty()) return;
    const std::string caller = std::move(turns_.front());
    turns_.pop_front();
    const auto queue = work_.find(caller);
    std::function<void()> work = std::move(queue->second.front());
    queue->second.pop_front();
    --count_queued_;
    if (queue->second.empty())
      work_.erase(queue);
    else
      turns_.push_back(caller);
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

grpc::Status no_memory() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          "the coordinator has not enough memory for this call: ask for less at once, or again later"};
}

grpc::Status too_busy() {
  return {grpc::StatusCode::UNAVAILABLE, "the coordinator has too many calls to answer; call again in a second"};
}

}  // namespace wl

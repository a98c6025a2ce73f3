#include "server/engine/event_loop.h"

#include <pthread.h>

#include <algorithm>

namespace wl {
namespace {

constexpr auto kTick = std::chrono::milliseconds(250);

}  // namespace

void EventLoop::start(int pool_threads, std::function<void(int64_t)> step, std::function<void()> tick) {
  step_ = std::move(step);
  tick_ = std::move(tick);
  thread_ = std::thread([this] { serve(); });
  pthread_setname_np(thread_.native_handle(), "wl-engine");
  for (int i = 0; i < std::max(1, pool_threads); ++i) pool_.emplace_back([this] { serve_pool(pool_work_, 0); });
  for (int i = 0; i < long_threads(); ++i) pool_.emplace_back([this] { serve_pool(long_work_, kLongNice); });
}

void EventLoop::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  idled_.notify_all();
}

void EventLoop::stop() {
  leave();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  event_queued_.notify_all();
  work_queued_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (std::thread& thread : pool_) thread.join();
  pool_.clear();
}

void EventLoop::post(std::function<void()> event) {
  ++computing_;
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  event_queued_.notify_one();
}

void EventLoop::compute(std::function<void()> work) {
  put(pool_work_, std::move(work), "");
}

void EventLoop::compute_long(std::function<void()> work, const std::string& caller) {
  put(long_work_, std::move(work), caller);
}

void EventLoop::put(Queue& queue, std::function<void()> work, const std::string& caller) {
  ++computing_;
  {
    const std::lock_guard lock(mutex_);
    queue.push(std::move(work), caller);
  }
  work_queued_.notify_all();
}

void EventLoop::mark(int64_t search_id) {
  if (due_.insert(search_id).second) ++computing_;
}

void EventLoop::done() {
  if (--computing_ > 0) return;
  idle_();
  const std::lock_guard lock(mutex_);
  idled_.notify_all();
}

void EventLoop::wait_idle(Clock::duration most) {
  std::unique_lock lock(mutex_);
  idled_.wait_for(lock, most, [this] { return !busy() || stopping_ || leaving(); });
}

void EventLoop::serve() {
  Clock::time_point last_tick = Clock::now();
  for (;;) {
    std::function<void()> event;
    {
      std::unique_lock lock(mutex_);
      if (due_.empty()) event_queued_.wait_for(lock, kTick, [&] { return stopping_ || !events_.empty(); });
      if (stopping_) return;
      if (!events_.empty()) {
        event = std::move(events_.front());
        events_.pop_front();
      }
    }
    const bool stepping = !event && !due_.empty();
    if (event) {
      event();
    } else if (stepping) {
      const int64_t id = *due_.begin();
      due_.erase(due_.begin());
      step_(id);
    }
    if (Clock::now() - last_tick >= kTick) {
      last_tick = Clock::now();
      tick_();
    }
    if (event || stepping) done();
  }
}

void EventLoop::serve_pool(Queue& queue, int nice) {
  give_way(nice);
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      work_queued_.wait(lock, [&] { return stopping_ || !queue.empty(); });
      if (stopping_) return;
      work = queue.pop();
    }
    work();
    done();
  }
}

}  // namespace wl

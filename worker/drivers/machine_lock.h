// The lock by which the devices of one machine do not disturb each other's measurements.
#pragma once

#include <condition_variable>
#include <mutex>

namespace wl {

// A lock on the machine that an agent holds while it measures. Agents of GPUs hold it together. The agent of the CPU
// holds it alone, because compilers and the threads of other devices would disturb its measurements. While it waits for
// the lock, agents of GPUs that ask later have to wait.
class MachineLock {
 public:
  void begin(bool alone) {
    std::unique_lock lock(mutex_);
    waiting_ += alone ? 1 : 0;
    changed_.wait(lock, [&] { return !taken_ && (alone ? shared_ == 0 : waiting_ == 0); });
    waiting_ -= alone ? 1 : 0;
    taken_ = alone;
    shared_ += alone ? 0 : 1;
  }
  void end(bool alone) {
    const std::lock_guard lock(mutex_);
    if (alone) taken_ = false;
    shared_ -= alone ? 0 : 1;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0, shared_ = 0;
  bool taken_ = false;
};

}  // namespace wl

// Ctrl-C and SIGTERM while a job runs: the first asks the job to end and keep its best kernels, the second ends this
// process at once with exit code 6.
#pragma once

#include <functional>

namespace wl {

class InterruptGuard {
 public:
  // `on_first` is called on its own thread. Only one guard may exist at a time.
  explicit InterruptGuard(std::function<void()> on_first);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace wl

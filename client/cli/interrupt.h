// Ctrl-C and SIGTERM. They are the program's from the first guard on, also where it is the first process of a
// container, which no signal ends by itself. The first signal runs what the newest guard says, the second ends this
// process at once with exit code 6.
#pragma once

#include <functional>

namespace wl {

class InterruptGuard {
 public:
  // `on_first` is called on a thread of its own, or here if a signal has come already. Guards are nested: the newest is
  // in charge while it lives.
  explicit InterruptGuard(std::function<void()> on_first);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether a signal has come since the first guard.
  static bool interrupted();

 private:
  const std::function<void()> on_first_;
};

}  // namespace wl

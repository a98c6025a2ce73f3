// Handles SIGINT (Ctrl-C) and SIGTERM while an InterruptGuard lives, also in the first process of a container, which
// has no default action for them. The first signal calls the function of the newest guard; the second ends the process
// at once with exit code 6.
#pragma once

#include <functional>

namespace wl {

class InterruptGuard {
 public:
  // `on_first` is called on a thread of its own, or by this constructor if a signal has arrived before. Guards may be
  // nested: only the newest guard's function is called, and newer guards must be destroyed before older ones.
  explicit InterruptGuard(std::function<void()> on_first);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether a signal has arrived since the first guard was created.
  static bool interrupted();

 private:
  const std::function<void()> on_first_;
};

}  // namespace wl

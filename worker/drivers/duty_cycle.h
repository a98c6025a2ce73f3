// The pauses of a worker that may use only a share of its machine. While a kernel is timed it has all processors, as it
// will have when it runs, so a share of processors would spoil the times. A share of the time does not.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/pool.h"

namespace wl {

class DutyCycle {
 public:
  using Seconds = std::chrono::duration<double>;
  // `share`: largest part of the time in which the machine works; 0 or 1: there are no pauses.
  explicit DutyCycle(double share) : rest_per_work_(share > 0 && share < 1 ? 1 / share - 1 : 0) {}
  // Notes time in which the whole machine was, or may have been, at work.
  void worked(Seconds time) { worked_ += time; }
  void rested(Seconds time) { rested_ += time; }
  // Does some work, for which the machine is used, and notes its time. Returns what `work` returns.
  template <typename Work>
  auto time(const Work& work) {
    struct Timer {
      DutyCycle* cycle;
      std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
      ~Timer() { cycle->worked(std::chrono::steady_clock::now() - begun); }
    } timer{this};
    return work();
  }
  // Notes what this process has computed itself since the last call: in embedded mode it also plans and compiles.
  void count_process() {
    const Seconds now = processor_time();
    worked((now - std::exchange(process_, now)) / static_cast<double>(allowed_cpus().size()));
  }
  // Returns the pause that is due before the machine works again.
  Seconds due() const { return std::max(Seconds(0), worked_ * rest_per_work_ - rested_); }

 private:
  // Returns the processor time that this process has taken, without its children.
  static Seconds processor_time() {
    timespec now = {};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
  }

  const double rest_per_work_;
  Seconds worked_{0}, rested_{0};
  Seconds process_ = processor_time();  // at the last call of count_process()
};

}  // namespace wl

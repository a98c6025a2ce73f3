// A Work limits how much work the compiler does for one request, and knows whether the caller still waits for the
// answer. It is passed to every function that may take long: a walk over a graph, a search, the stages of a plan. A
// Work does not change the results of these functions, so compilation stays a pure function: with a Work, it has the
// same result as without, or none.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "compiler/base/status.h"

namespace wl {

class Work {
 public:
  // The default limit in steps. A step is at most a microsecond of work, and often a tenth of one. No graph that can be
  // planned within a minute takes this many steps.
  static constexpr uint64_t kMostSteps = 300'000'000;

  // `gone` returns an error, such as Cancelled or DeadlineExceeded, once nobody waits for the answer any more. The
  // thread that does the work calls it, about a thousand times a second. `most` is the largest number of steps.
  explicit Work(std::function<absl::Status()> gone = {}, uint64_t most = kMostSteps)
      : gone_(std::move(gone)), most_(most) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Counts `steps` of work that the caller is about to do. Returns false if there were too many steps or if nobody
  // waits for the answer any more, and from then on at every call. The caller must then return at once: its partial
  // result is not an answer, and status() is the error to report.
  bool go_on(uint64_t steps) {
    steps_ += steps;
    if (steps_ >= next_look_) look();
    return status_.ok();
  }
  uint64_t steps() const { return steps_; }
  // Returns OK, or the error that `gone` returned, or ResourceExhausted after too many steps.
  const absl::Status& status() const { return status_; }

 private:
  static constexpr uint64_t kLookEvery = 1000;  // steps of work between two calls of `gone`
  void look();

  const std::function<absl::Status()> gone_;
  const uint64_t most_;
  uint64_t steps_ = 0, next_look_ = 0;
  absl::Status status_;
};

// These functions do the same as Work::go_on() and Work::status(), for a pointer that may be null. Null stands for a
// caller that waits without any limit.
inline bool go_on(Work* work, uint64_t steps) {
  return work == nullptr || work->go_on(steps);
}
inline absl::Status ended(const Work* work) {
  return work == nullptr ? absl::OkStatus() : work->status();
}

}  // namespace wl

// How much work may be done for one question to the compiler, and whether its caller still waits for the answer. It is
// handed down to whatever may take long: a walk, a search, the stages of a plan. What that makes of its arguments does
// not depend on it, so compilation stays a pure function: with a Work it has the same result or none.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "compiler/base/status.h"

namespace wl {

class Work {
 public:
  // A step is a microsecond of work at most, and often a tenth of it. No graph that is planned within a minute takes so
  // many.
  static constexpr uint64_t kMostSteps = 300'000'000;

  // `gone`: what became of the caller; not OK, as Cancelled or DeadlineExceeded: nobody waits any more. It is called
  // about a thousand times a second, by whoever works.
  explicit Work(std::function<absl::Status()> gone = {}, uint64_t most = kMostSteps)
      : gone_(std::move(gone)), most_(most) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Counts steps, before they are done. False: too many are done, or nobody waits. Then, and ever after, whoever works
  // returns at once; what was made so far is no answer, and status() is.
  bool go_on(uint64_t steps) {
    steps_ += steps;
    if (steps_ >= next_look_) look();
    return status_.ok();
  }
  uint64_t steps() const { return steps_; }
  // OK; what `gone` said; or ResourceExhausted after too many steps.
  const absl::Status& status() const { return status_; }

 private:
  static constexpr uint64_t kLookEvery = 1000;  // steps
  void look();

  const std::function<absl::Status()> gone_;
  const uint64_t most_;
  uint64_t steps_ = 0, next_look_ = 0;
  absl::Status status_;
};

// The same for a Work that may be missing: null is for callers that wait for as long as it takes.
inline bool go_on(Work* work, uint64_t steps) {
  return work == nullptr || work->go_on(steps);
}
inline absl::Status ended(const Work* work) {
  return work == nullptr ? absl::OkStatus() : work->status();
}

}  // namespace wl

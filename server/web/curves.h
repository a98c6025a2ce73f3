// A cache of the trials of searches, from which pages draw curves. Pages ask for a running search again and again, so
// only new trials are read from the store.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/store/store.h"

namespace wl {

using TrialPoints = std::vector<TrialPoint>;  // trials of a search, in the order of their numbers

class Curves {
 public:
  explicit Curves(Store* store) : store_(store) {}

  // Returns the trials of a search, at most 10^4. They are at most a second old, but trials that were deleted from the
  // store may be among them for a minute. Thread-safe.
  absl::StatusOr<std::shared_ptr<const TrialPoints>> of(int64_t search_id);

 private:
  using Clock = std::chrono::steady_clock;
  struct Curve {
    std::shared_ptr<const TrialPoints> points;
    Clock::time_point begun;  // when all of the curve's points were last read from the store
    Clock::time_point read;   // when new points of it were last read from the store
  };

  void make_room();  // The caller must hold mutex_.

  Store* const store_;
  std::mutex mutex_;  // guards the members declared below
  std::map<int64_t, Curve> curves_;
  size_t points_ = 0;
};

}  // namespace wl

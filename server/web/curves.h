// The trials of searches as curves show them. A search that goes on is asked for again and again, so only what is new
// is read from the store.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/store/store.h"

namespace wl {

using TrialPoints = std::vector<TrialPoint>;  // by number

class Curves {
 public:
  explicit Curves(Store* store) : store_(store) {}

  // Any thread. At most a second old, and what is no longer in the store may be there for a minute; at most 10^4
  // points.
  absl::StatusOr<std::shared_ptr<const TrialPoints>> of(int64_t search_id);

 private:
  using Clock = std::chrono::steady_clock;
  struct Curve {
    std::shared_ptr<const TrialPoints> points;
    Clock::time_point begun;  // when all of it was read
    Clock::time_point read;   // when something was
  };

  void make_room();  // with the lock held

  Store* const store_;
  std::mutex mutex_;  // guards the rest
  std::map<int64_t, Curve> curves_;
  size_t points_ = 0;
};

}  // namespace wl

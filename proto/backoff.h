// Delays between attempts to reach a peer that is away.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace wl {

// Each delay is drawn from the upper half of a range that doubles from `first` up to `most`, so that those who lost the
// same peer do not all come back at the same time. Not for several threads.
class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Backoff(Milliseconds first, Milliseconds most, uint64_t seed = std::random_device()())
      : first_(first), most_(most), range_(first), random_(seed) {}

  Milliseconds next() {
    std::uniform_int_distribution<int64_t> draw(range_.count() / 2, range_.count());
    const Milliseconds delay(draw(random_));
    range_ = std::min(2 * range_, most_);
    return delay;
  }
  void reset() { range_ = first_; }  // the peer has answered

 private:
  Milliseconds first_, most_, range_;
  std::mt19937_64 random_;
};

}  // namespace wl

// Delays between attempts to reach a peer that does not answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace wl {

// Draws delays at random, each between half of a limit and the limit. The limit doubles with each delay, from `first`
// up to `most`. So clients that lost the same peer do not all reconnect at the same time. Not thread-safe.
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
  void reset() { range_ = first_; }  // makes the next delay short again; to be called when the peer has answered

 private:
  Milliseconds first_, most_, range_;
  std::mt19937_64 random_;
};

}  // namespace wl

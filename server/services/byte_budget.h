// How many bytes calls may hold together while they arrive or leave. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace wl {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : left_(limit) {}

  // False, and nothing is taken, when less is left. What was taken is given back with give().
  bool take(int64_t bytes) {
    if (left_.fetch_sub(bytes) >= bytes) return true;
    give(bytes);
    return false;
  }
  void give(int64_t bytes) { left_.fetch_add(bytes); }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace wl

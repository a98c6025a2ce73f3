// How much of something all calls together may hold, such as bytes. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace wl {

class Budget {
 public:
  explicit Budget(int64_t limit) : left_(limit) {}

  // False, and nothing is taken, when less is left. What was taken is given back with give().
  bool take(int64_t amount) {
    if (left_.fetch_sub(amount) >= amount) return true;
    give(amount);
    return false;
  }
  void give(int64_t amount) { left_.fetch_add(amount); }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace wl

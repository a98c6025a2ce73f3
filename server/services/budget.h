// Limits how much of a resource, such as bytes, all calls together hold. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace wl {

class Budget {
 public:
  explicit Budget(int64_t limit) : left_(limit) {}

  // Takes `amount` of the resource, or returns false and takes nothing if less is left. It is returned with give().
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

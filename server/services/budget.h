// Limits how much of a resource, such as bytes, all calls together hold. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace wl {

class Budget {
 public:
  explicit Budget(int64_t limit) : left_(limit) {}

  // Takes `amount` of the resource; if less than that is left, takes nothing and returns false. The caller returns what
  // it took by give().
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

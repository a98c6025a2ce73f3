// How many of the kernels that jobs need the store had already.
#pragma once

#include <cstdint>
#include <mutex>

#include "compiler/base/job.h"

namespace wl {

// What the store had for the groups of jobs.
struct LookedUp {
  int64_t hits = 0, misses = 0;  // numbers of groups with and without a sufficient record
  double saved_s = 0;            // seconds that workers took for the searches that led to the records of the hits
  void hit(const KernelRecord& record) {
    ++hits;
    saved_s += record.compile_s + record.check_s + record.measure_s;
  }
};

// The sum over all jobs since the coordinator started. Thread-safe.
class LookedUpSum {
 public:
  void add(const LookedUp& more) {
    const std::lock_guard lock(mutex_);
    sum_.hits += more.hits;
    sum_.misses += more.misses;
    sum_.saved_s += more.saved_s;
  }
  LookedUp sum() const {
    const std::lock_guard lock(mutex_);
    return sum_;
  }

 private:
  mutable std::mutex mutex_;
  LookedUp sum_;
};

}  // namespace wl

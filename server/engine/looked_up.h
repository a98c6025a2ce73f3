// Counts the kernels in the results of jobs: those whose record the store had before the job, and those whose record
// it lacked.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "compiler/base/job.h"

namespace wl {

// How many kernels of finished jobs had a record in the store before the job, how many had none, and the time that
// these records saved.
struct LookedUp {
  int64_t hits = 0, misses = 0;  // numbers of kernels with and without a record before the job
  double saved_s = 0;            // seconds of workers' time that the searches for the kernels in `hits` had taken
};

// Returns the counts of kernels for the result of a job that the store answered as a whole: all are hits.
inline LookedUp found_in(const JobResult& result) {
  return {static_cast<int64_t>(result.groups.size()), 0, result.compile_s + result.check_s + result.measure_s};
}
// Returns the counts of kernels for the result of a job that the store did not answer as a whole. `records`: the
// records of the job's groups, by key.
inline LookedUp found_in(const JobResult& result, const std::map<std::string, KernelRecord>& records) {
  LookedUp known;
  for (const GroupResult& group : result.groups) {
    const auto record = records.find(group.key);
    if (group.source != "cached" || record == records.end()) {
      ++known.misses;
      continue;
    }
    ++known.hits;
    known.saved_s += record->second.compile_s + record->second.check_s + record->second.measure_s;
  }
  return known;
}

// The sum of the LookedUp of all jobs that ended with a result since the coordinator started. Thread-safe.
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

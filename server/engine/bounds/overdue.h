// How long a lease may last. A worker's reports of progress cannot be verified, so a lease also ends after a time limit
// that is computed from its batch, and earlier if batches of its kind usually take less time and another worker waits
// for work. Not thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

class Overdue {
 public:
  using Clock = std::chrono::steady_clock;

  // `unknown_s`: seconds that a batch may take while no batch of its kind has been reported.
  explicit Overdue(double unknown_s) : unknown_s_(unknown_s) {}

  // Returns the seconds after which no worker can still be measuring the batch, from the deadlines of its candidates.
  static double most_seconds(const Batch& batch);

  // Notes that a batch for the device with this fingerprint was reported `seconds` after its lease was granted.
  void reported(const std::string& device, const Batch& batch, double seconds);
  // Returns the seconds after which a leased batch is given to another worker that waits for work: several times the
  // longest time per candidate in the last batches of its kind on the device. `times`: how many leases of the batch
  // were already ended in this way; each of them doubles the result.
  double patience(const std::string& device, const Batch& batch, int times) const;

  // Notes that a worker kept a batch for longer than patience(). For some time, which grows with every note, other
  // workers are preferred to all workers of its principal. If its principal is unknown, other workers of unknown
  // principals are preferred to this worker alone, and workers of known principals to all workers of unknown ones,
  // since a caller without a principal can take a new name at no cost.
  void noted(const std::string& worker, Clock::time_point now);
  bool is_noted(const std::string& worker, Clock::time_point now) const;
  // Returns those of `workers` about which there are notes, made by noted(), that say to prefer other workers; returns
  // none if that would be all of them.
  std::vector<std::string> last_of(const std::vector<std::string>& workers, Clock::time_point now) const;
  bool nobody_is_noted() const { return notes_.empty(); }
  void forget(Clock::time_point now);  // deletes notes that expired more than an hour ago

 private:
  bool is_noted_as(const std::string& who, Clock::time_point now) const;
  struct Note {
    int times = 0;
    Clock::time_point until;
  };
  const double unknown_s_;
  // Seconds per candidate of the last batches of each kind, the latest last.
  std::map<std::string, std::deque<double>> usual_;
  std::map<std::string, Note> notes_;
};

}  // namespace wl

// How long a lease may last. That a worker goes on is known only by what it says itself, so a lease has an end that
// follows from what it was given, and an earlier one where batches of its kind take less and somebody else has nothing
// to do. Not safe for several threads.
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

  // `unknown_s`: how long a batch may take of whose kind none was reported yet.
  explicit Overdue(double unknown_s) : unknown_s_(unknown_s) {}

  // Seconds after which no worker is still at a batch by the deadlines of its candidates.
  static double most_seconds(const Batch& batch);

  // A batch of this device was reported so long after it was granted.
  void reported(const std::string& device, const Batch& batch, double seconds);
  // Seconds after which a batch is given to somebody else who waits: several times what each candidate of the last
  // batches of the device took. `times`: how often that has happened to the batch.
  double patience(const std::string& device, const Batch& batch, int times) const;

  // A worker had a batch for longer than that. For a while, which grows, others come before all workers of its caller.
  // If nobody knows who that is, others without a name come before it alone, and those with one before all of them: the
  // next name costs nothing.
  void noted(const std::string& worker, Clock::time_point now);
  bool is_noted(const std::string& worker, Clock::time_point now) const;
  // Which of the workers come after the others among them; none, if there are no others.
  std::vector<std::string> last_of(const std::vector<std::string>& workers, Clock::time_point now) const;
  bool nobody_is_noted() const { return notes_.empty(); }
  void forget(Clock::time_point now);  // whose time is over

 private:
  bool is_noted_as(const std::string& who, Clock::time_point now) const;
  struct Note {
    int times = 0;
    Clock::time_point until;
  };
  const double unknown_s_;
  std::map<std::string, std::deque<double>> usual_;  // seconds for each candidate, the latest last
  std::map<std::string, Note> notes_;
};

}  // namespace wl

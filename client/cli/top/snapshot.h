// The state of a coordinator at one moment, its jobs and workers, and the rates of its jobs between such moments.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/remote/service.h"

namespace wl {

struct Snapshot {
  int64_t unix_ms = 0;  // time of the snapshot by this machine's clock, in ms since 1970
  std::string server;   // the coordinator's address, as the user gave it
  ServerSummary about;
  std::vector<Job> open;   // the coordinator's jobs that are not done, newest first
  std::vector<Job> ended;  // those of the coordinator's newest jobs that have ended
  std::vector<WorkerSummary> workers;
  std::optional<Usage> usage;  // what programs run; nullopt: the coordinator is of a version that does not say it
  int64_t usage_unix_ms = 0;   // when that was asked for; 0: it was not
};

// Makes a snapshot by calls of the coordinator. Errors are those of the calls. What programs run is taken from the
// snapshot `before` if that is less than ten seconds old there.
absl::StatusOr<Snapshot> take_snapshot(Service& service, const std::string& server, const Snapshot& before = {});

// Trials per second, by job name.
using Rates = std::map<std::string, double>;

// Computes rates from successive snapshots: over the last ten seconds or, for a job that is new, since it began.
class RateMeter {
 public:
  Rates add(const Snapshot& snapshot);

 private:
  struct Sample {
    int64_t unix_ms = 0;
    std::map<std::string, int64_t> trials;  // for each name of a job, the number of its finished trials
  };
  std::deque<Sample> samples_;  // counts of trials at recent times, the oldest first
};

// Return one line of JSON: a snapshot, or the reason why there is none.
std::string json_line(const Snapshot& snapshot, const Rates& rates);
std::string json_line(const std::string& server, const absl::Status& error);

// Returns the purpose of a lease: "search", "promotion 1" or "confirmation of 1".
std::string purpose_text(int64_t phase);

}  // namespace wl

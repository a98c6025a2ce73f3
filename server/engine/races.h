// The open races. A race is a batch of chains (covers of a whole graph, timed in turns), by which jobs choose among
// covers. In the store it is a search whose only trials are those of one batch, or of a few if other load disturbed the
// timing. So leases, restarts and lost workers are handled as for other searches. The race's key says what is timed
// (server/jobs/whole.h), so jobs that ask for the same timing share a race.
//
// Owned by the engine's thread: no lock, and no function may be called from another thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/leases.h"

namespace wl {

struct Race {
  SearchRow row;
  std::string batch_id;  // id of the race's open batch
  Offer offer;           // the offered batch, offered again if other load disturbed the timing
  std::vector<Trial> so_far;
  // The trials of the race once it has ended; an empty list: no worker could run it.
  std::optional<std::vector<Trial>> trials;
  std::set<int64_t> jobs;  // ids of the jobs that wait for the race
};

class Races {
 public:
  // All pointers must outlive the object. `over` is called for each job of a race that has ended.
  Races(Store* store, Leases* leases, const Workers* workers, const EngineOptions& options,
        std::function<void(int64_t job)> over)
      : store_(store), leases_(leases), workers_(workers), options_(options), over_(std::move(over)) {}

  // Lets the job join the race for these chains, and sets the batch's id. The batch is offered unless the race is open
  // already or has ended. `floor_ns`: as in Offer.
  absl::StatusOr<const Race*> join(const JobRow& job, Batch batch, double floor_ns);
  void leave(int64_t job_id);  // Removes a job from its races; races without jobs are taken back.
  void tick();                 // Ends races that no connected worker may run.
  void on_trials(int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials);
  void on_store_failure(int64_t search_id, const absl::Status& status);

 private:
  absl::Status offer(Race& race, const JobRow& job, Batch batch, double floor_ns);
  absl::Status offer_next(Race& race, const std::vector<BatchRow>& open, int64_t phase);
  void end(Race& race, std::vector<Trial> trials);

  Store* const store_;
  Leases* const leases_;
  const Workers* const workers_;
  const EngineOptions& options_;
  const std::function<void(int64_t)> over_;
  std::map<int64_t, Race> races_;  // the races that jobs wait for or have used, by search id
};

}  // namespace wl

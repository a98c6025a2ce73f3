// The races that are open: batches of chains, by which jobs choose among covers of a whole graph. A race is a search
// of the store whose only trials are those of one batch, or of a few where other load ran meanwhile, so that leases,
// restarts and lost workers are treated as for any other; its key says what it times (server/jobs/whole.h), so that
// jobs share it.
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
  std::string batch_id;  // of the open batch
  Offer offer;           // what it is offered as, again where other load ran meanwhile
  std::vector<Trial> so_far;
  std::optional<std::vector<Trial>> trials;  // once it is over; empty: nobody could run it
  std::set<int64_t> jobs;                    // that wait for it
};

class Races {
 public:
  // All must outlive the races. `over`: a race has ended for this job.
  Races(Store* store, Leases* leases, const Workers* workers, const EngineOptions& options,
        std::function<void(int64_t job)> over)
      : store_(store), leases_(leases), workers_(workers), options_(options), over_(std::move(over)) {}

  // The job joins the race of the batch (without its id), which is offered unless it is open or over already.
  // `floor_ns`: as in Offer.
  absl::StatusOr<const Race*> join(const JobRow& job, Batch batch, double floor_ns);
  void leave(int64_t job_id);  // Races that nobody waits for are taken back.
  void tick();                 // Ends races that none of the workers that are here can run.
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
  std::map<int64_t, Race> races_;  // by id of the search
};

}  // namespace wl

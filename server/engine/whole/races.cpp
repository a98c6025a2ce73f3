#include "server/engine/races.h"

#include <algorithm>
#include <utility>

#include "server/jobs/whole.h"

namespace wl {
namespace {

constexpr int64_t kMostRaces = 3;  // maximum number of batches in a race

// Returns the row in which the store keeps a batch of a race. `phase`: the number of the batch in its race, from 1 on.
// It is not 0, which stands for the rounds of a search: a job waits for this batch as for a promotion.
BatchRow row_of(const Race& race, const Batch& batch, int64_t phase) {
  BatchRow row;
  row.id = cat("s", race.row.id, "/whole", phase);
  row.search_id = race.row.id;
  row.phase = phase;
  row.candidates = reported_of(batch);
  row.size = static_cast<int64_t>(row.candidates.size());
  return row;
}

}  // namespace

absl::StatusOr<const Race*> Races::join(const JobRow& job, Batch batch, double floor_ns) {
  SearchRow wanted;
  wanted.key = batch.problem.key;
  wanted.environment = job.device->compiler_versions;
  wanted.strategy = job.options.strategy;
  wanted.seed = job.options.seed;
  wanted.team = job.team;
  WL_ASSIGN_OR_RETURN(SearchRow row, store_->open_search(job.id, wanted, /*retune=*/false));
  const auto [at, is_new] = races_.try_emplace(row.id);
  Race& race = at->second;
  race.jobs.insert(job.id);
  if (!is_new) {
    if (!job.options.background && race.offer.rules.priority == kBackground) {
      race.offer.rules = options_.rules(job.team);
      leases_->set_rules(race.batch_id, race.offer.rules);
    }
    return &race;
  }
  race.row = std::move(row);
  const absl::Status status = offer(race, job, std::move(batch), floor_ns);
  if (status.ok()) return &race;
  races_.erase(at);
  return status;
}

// Takes over the trials that are stored for the race, and offers a batch to the workers if these trials do not suffice.
// A batch that was open before the coordinator was restarted is offered again.
absl::Status Races::offer(Race& race, const JobRow& job, Batch batch, double floor_ns) {
  WL_ASSIGN_OR_RETURN(const std::vector<BatchRow> open, store_->open_batches(race.row.id));
  WL_ASSIGN_OR_RETURN(const std::vector<PhaseTrial> stored, store_->trials(race.row.id));
  batch.trace = job.trace;
  race.offer.batch = std::make_shared<const Batch>(std::move(batch));
  race.offer.search_id = race.row.id;
  race.offer.device = *job.device;
  race.offer.order = {0, job.id, 0};
  race.offer.floor_ns = floor_ns;
  race.offer.team = job.team;
  race.offer.rules = options_.rules(job.team);
  if (job.options.background) race.offer.rules.priority = kBackground;
  int64_t phase = 0;
  for (const PhaseTrial& item : stored) {
    race.so_far.push_back(item.trial);
    phase = std::max(phase, item.phase);
  }
  if (open.empty() && phase > 0 && (phase >= kMostRaces || !were_disturbed(race.so_far))) {
    race.trials = together(race.so_far);
    return absl::OkStatus();
  }
  return offer_next(race, open, phase + 1);
}

// Offers the batch of the race that is open in the store or, if there is none, a new batch with `phase`.
absl::Status Races::offer_next(Race& race, const std::vector<BatchRow>& open, int64_t phase) {
  Batch batch = *race.offer.batch;
  Offer offer = race.offer;
  offer.row = open.empty() ? row_of(race, batch, phase) : open.front();
  if (open.empty()) WL_RETURN_IF_ERROR(store_->put_round(offer.row, race.row.id, phase, {}));
  batch.id = race.batch_id = offer.row.id;
  batch.phase = offer.row.phase;
  offer.batch = std::make_shared<const Batch>(std::move(batch));
  leases_->offer(std::move(offer));
  return absl::OkStatus();
}

void Races::leave(int64_t job_id) {
  for (auto at = races_.begin(); at != races_.end();) {
    Race& race = at->second;
    race.jobs.erase(job_id);
    if (race.jobs.empty() && !race.trials) (void)leases_->take_back(race.batch_id, "", /*leased_too=*/true);
    at = race.jobs.empty() ? races_.erase(at) : std::next(at);
  }
}

void Races::tick() {
  std::vector<int64_t> stuck;
  for (const auto& [id, race] : races_) {
    const bool can = race.trials || leases_->can_be_had(race.batch_id);
    if (!can && !workers_->names_here(race.offer.device, race.row.team).empty()) stuck.push_back(id);
  }
  for (int64_t id : stuck) {
    const auto at = races_.find(id);
    if (at != races_.end() && leases_->take_back(at->second.batch_id, "", /*leased_too=*/false)) end(at->second, {});
  }
}

void Races::on_trials(int64_t search_id, const std::string& batch_id, const std::vector<Trial>& trials) {
  const auto at = races_.find(search_id);
  if (at == races_.end() || at->second.trials || at->second.batch_id != batch_id) return;
  Race& race = at->second;
  const auto count = static_cast<int64_t>(race.offer.batch->chains.size());
  race.so_far.insert(race.so_far.end(), trials.begin(), trials.end());
  const int64_t phase = static_cast<int64_t>(race.so_far.size()) / std::max<int64_t>(count, 1);
  if (phase < kMostRaces && were_disturbed(race.so_far) && offer_next(race, {}, phase + 1).ok()) return;
  end(race, together(race.so_far));
}

// Ends the race without trials after a lasting error of the store. Its jobs then choose their covers by the times of
// single kernels.
void Races::on_store_failure(int64_t search_id, const absl::Status& status) {
  const auto at = races_.find(search_id);
  if (lasts(status) && at != races_.end() && !at->second.trials) end(at->second, {});
}

void Races::end(Race& race, std::vector<Trial> trials) {
  race.trials = std::move(trials);
  // The set of waiting jobs is copied, since over_() may make a job leave the race, which may delete the race.
  const std::set<int64_t> waiting = race.jobs;
  for (int64_t job : waiting) over_(job);
}

}  // namespace wl

// A job that verifies winners of other environments again: a few at a time, while no other job needs the workers. Each
// winner becomes a search that only verifies the record of the other environment (Search::elsewhere).
#include <algorithm>

#include "server/engine/devices.h"
#include "server/engine/jobs.h"
#include "server/jobs/reverify.h"

namespace wl {
namespace {

// A job verifies at most this many winners at once, and at most as many as there are workers for its device.
constexpr int kMostAtOnce = 8;
constexpr int kMostWinners = 100'000;
constexpr int64_t kTrials = 2;  // trials that a winner's search needs: the default schedule and the winner's plan

struct Winners {
  JobPlan plan;
  ActiveJob::Reverifying reverifying;
  Records records;  // records of the winners whose outcome was stored before the coordinator started
};

absl::StatusOr<Winners> winners_of(Store& store, const JobRow& job) {
  Winners made;
  auto& [plan, reverifying, records] = made;
  plan.device = *job.device;
  WL_ASSIGN_OR_RETURN(plan.machine, machine_of(plan.device));
  WL_ASSIGN_OR_RETURN(const std::vector<ReverifiedRow> rows, store.reverified(job.id, 0, kMostWinners));
  WL_ASSIGN_OR_RETURN(const std::set<std::string> open, store.keys_with_search(job.id));
  for (const ReverifiedRow& row : rows) {
    ActiveJob::Reverifying::Winner& winner = reverifying.winners.emplace_back();
    winner.row = row;
    winner.open = open.contains(row.key);
    if (row.outcome != Reverified::kWaiting) {
      reverifying.settled.insert(row.key);
      WL_ASSIGN_OR_RETURN(auto now, store.record_by_key(row.key, row.environment, {.team = job.team}));
      if (now) records.emplace(row.key, std::move(now->record));
    }
    WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> record, store.record_by_digest(row.digest));
    absl::StatusOr<Winner> group = absl::NotFoundError("its record is no longer in the store");
    if (record) group = winner_of(record->record, plan.device);
    if (group.ok()) {
      winner.cold = group->cold;
      plan.groups.push_back(std::move(group->group));
    } else {
      winner.unusable = std::string(group.status().message());
    }
  }
  return made;
}

// Whether an error concerns one winner only, so that the other winners can still be verified.
bool is_of_winner(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsInvalidArgument(status) || absl::IsUnimplemented(status) ||
         absl::IsFailedPrecondition(status) || absl::IsNotFound(status);
}

}  // namespace

void Jobs::plan_winners(const ActiveJob& job) {
  loop_->compute([this, row = job.row] {
    auto made = std::make_shared<absl::StatusOr<Winners>>(winners_of(*store_, row));
    loop_->post([this, id = row.id, made] {
      if (const auto found = jobs_.find(id); found != jobs_.end() && made->ok()) {
        ActiveJob& planned = found->second;
        planned.reverifying = std::move((*made)->reverifying);
        planned.records = std::move((*made)->records);
        for (const auto& [key, record] : planned.records) planned.transferred.insert(key);
      }
      take_plan(id, made->ok() ? absl::StatusOr<JobPlan>(std::move((*made)->plan)) : made->status());
    });
  });
}

void Jobs::advance_reverifying(ActiveJob& job) {
  if (job.row.cancelling) return finish(job, JobState::kCancelled, absl::OkStatus());
  absl::Status status = settle_ended(job);
  if (status.ok()) status = begin_winners(job);
  if (!status.ok()) return finish(job, JobState::kFailed, status);
  const bool done = job.searches.empty() && job.reverifying->begun == job.reverifying->winners.size();
  return done ? finish(job, JobState::kSucceeded, absl::OkStatus()) : publish(job);
}

// Whether a job of a client may need the same workers as this job.
bool Jobs::others_wait(const ActiveJob& job) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& item) {
    const ActiveJob& other = item.second;
    if (other.row.graph.empty() || other.row.options.background || !other.row.device) return false;
    return serves(*job.row.device, *other.row.device) || serves(*other.row.device, *job.row.device);
  });
}

absl::Status Jobs::begin_winners(ActiveJob& job) {
  ActiveJob::Reverifying& reverifying = *job.reverifying;
  const int most = std::min(kMostAtOnce, workers_->serving(*job.row.device, job.row.team));
  while (reverifying.begun < reverifying.winners.size()) {
    const ActiveJob::Reverifying::Winner& winner = reverifying.winners[reverifying.begun];
    const bool settled = reverifying.settled.contains(winner.row.key);
    // A search that was open before a restart begins at once, since its worker reports to the new process before it
    // asks for more work.
    const bool may_begin = winner.open || (static_cast<int>(job.searches.size()) < most && !others_wait(job));
    if (!settled && !may_begin) break;
    ++reverifying.begun;
    if (settled) continue;
    if (winner.unusable.empty()) {
      WL_RETURN_IF_ERROR(begin_winner(job, winner));
    } else {
      WL_RETURN_IF_ERROR(settle(job, winner.row.key, winner.unusable));
    }
  }
  return absl::OkStatus();
}

absl::Status Jobs::begin_winner(ActiveJob& job, const ActiveJob::Reverifying::Winner& winner) {
  const std::string& key = winner.row.key;
  SearchRow wanted;
  wanted.key = key;
  wanted.environment = environment_of(*job.row.device);
  wanted.team = job.row.team;
  WL_ASSIGN_OR_RETURN(std::optional<RecordRow> before, store_->record_by_digest(winner.row.digest));
  WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> known,
                      store_->record_by_key(key, wanted.environment, {.team = wanted.team}));
  if (!before || known) return settle(job, key, before ? "" : "its record is no longer in the store");
  wanted.strategy = before->record.strategy;
  WL_ASSIGN_OR_RETURN(const SearchRow row, store_->open_search(job.row.id, wanted, /*retune=*/false));
  const auto group = std::find_if(job.plan->groups.begin(), job.plan->groups.end(),
                                  [&](const PlannedGroup& one) { return one.key == key; });
  WL_ASSIGN_OR_RETURN(Search * search, searches_->take_up(row, *group, *job.row.device, job.plan->machine, job.known));
  if (search->jobs.empty()) {
    search->background = true;
    search->cold = winner.cold;
    search->elsewhere = std::move(before->record);
  }
  search->jobs.insert(job.row.id);
  job.searches[key] = row.id;
  job.needed[key] = kTrials;
  if (search->end == Search::End::kOpen) searches_->mark(*search);
  return absl::OkStatus();
}

// Stores the outcome of each winner whose search has ended or already has a record.
absl::Status Jobs::settle_ended(ActiveJob& job) {
  std::vector<std::string> ended;
  for (const auto& [key, id] : job.searches)
    if (job.records.contains(key) || searches_->at(id).end != Search::End::kOpen) ended.push_back(key);
  for (const std::string& key : ended) WL_RETURN_IF_ERROR(settle(job, key, ""));
  return absl::OkStatus();
}

// Stores the outcome of a winner. `why`: why the winner has no record, if known. The search of its key may no longer
// exist afterwards.
absl::Status Jobs::settle(ActiveJob& job, const std::string& key, const std::string& why) {
  std::vector<ActiveJob::Reverifying::Winner>& winners = job.reverifying->winners;
  const auto at = std::find_if(winners.begin(), winners.end(), [&](const auto& one) { return one.row.key == key; });
  if (at == winners.end() || !job.reverifying->settled.insert(key).second) return absl::OkStatus();
  ReverifiedRow& row = at->row;
  WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> before, store_->record_by_digest(row.digest));
  WL_ASSIGN_OR_RETURN(std::optional<RecordRow> now,
                      store_->record_by_key(key, row.environment, {.team = job.row.team}));
  const auto search = job.searches.find(key);
  std::vector<PhaseTrial> trials;
  if (search != job.searches.end() || now) {
    WL_ASSIGN_OR_RETURN(trials, store_->trials(search != job.searches.end() ? search->second : now->search_id));
  }
  const std::optional<KernelRecord> record = now ? std::optional(now->record) : std::nullopt;
  const ReverifiedAs as =
      before ? reverified_as(before->record, record, trials, why) : ReverifiedAs{Reverified::kLost, why};
  row.outcome = as.outcome;
  row.message = as.message;
  row.plan = record ? record->plan : "";
  row.ns = record ? undisturbed_ns(record->samples_ns) : 0;
  WL_RETURN_IF_ERROR(store_->settle_reverified(row));
  options_.reverified(row.outcome);
  if (record) {
    job.records.insert_or_assign(key, *record);
    job.transferred.insert(key);
  }
  if (search != job.searches.end()) {
    const int64_t id = search->second;
    job.searches.erase(search);
    searches_->leave(job.row.id, id);
  }
  return absl::OkStatus();
}

// Called when the search of a winner has failed: the winner is lost, or the whole job fails if the error concerns more
// than this winner.
void Jobs::lose(ActiveJob& job, const std::string& key, const absl::Status& why) {
  absl::Status status = why;
  if (is_of_winner(why)) status = settle(job, key, std::string(why.message()));
  if (!status.ok()) return finish(job, JobState::kFailed, status);
  advance_reverifying(job);
}

}  // namespace wl

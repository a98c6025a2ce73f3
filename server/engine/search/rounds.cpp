// Rounds of a search: how they are prepared in the pool, offered as batches, and taken back.
#include <algorithm>

#include "compiler/base/batch_id.h"
#include "server/engine/devices.h"
#include "server/engine/searches.h"

namespace wl {
namespace {

// The time in ns for which a candidate of a round is timed. It suffices to rank candidates; finalists are timed for
// longer, side by side.
constexpr int64_t kSearchBudget = 60'000'000;
// A kernel is timed at least this often, even if kSearchBudget is exceeded, because undisturbed_ns() takes the second
// least sample.
constexpr int kSearchRepeats = 3;

Recipe recipe_for(const Search& search, bool promotion) {
  Recipe recipe;
  recipe.cold = search.cold;
  recipe.interleave = promotion;
  if (promotion) return recipe;
  recipe.budget_ns = kSearchBudget;
  recipe.min_repeats = kSearchRepeats;
  recipe.best_ns = static_cast<int64_t>(search.tally.best_ns);
  return recipe;
}

int64_t launches_of(const PlannedGroup& group) {
  return std::max({group.fused_count, group.between_count, group.part_count});
}

// Returns the limits of a GPU's multiprocessors, against which a worker checks compiled kernels; all zero for CPUs.
CodeLimits limits_of(const Device& device) {
  const auto row = target_named(device.target);
  return row.ok() ? code_limits((*row)->gpu) : CodeLimits{};
}

BatchRow new_batch_row(const Search& search, const Round& round) {
  BatchRow row;
  row.id = batch_id(search.row.id, round.phase, round.candidates.front().trial);
  row.search_id = search.row.id;
  row.phase = round.phase;
  row.first_trial = round.candidates.front().trial;
  row.size = static_cast<int64_t>(round.candidates.size());
  row.check_seed = round.check ? round.check->seed : round.phase > 0 ? search.check_seeds.back() : 0;
  for (const Candidate& candidate : round.candidates) row.candidates.push_back({candidate.trial, candidate.plan});
  return row;
}

std::shared_ptr<const Batch> batch_for(const Search& search, const BatchRow& row, Round round, std::string trace) {
  auto batch = std::make_shared<Batch>();
  batch->id = row.id;
  batch->trace = std::move(trace);
  batch->phase = row.phase;
  batch->problem = search.group.problem;
  batch->checks.assign(search.checks.begin(), search.checks.begin() + (batch->promotion() ? 2 : 1));
  if (round.check) batch->checks.back() = *std::move(round.check);
  batch->recipe = recipe_for(search, batch->promotion());
  batch->candidates = std::move(round.candidates);
  batch->keep_objects = batch->promotion();
  batch->limits = limits_of(search.device);
  return batch;
}

}  // namespace

Standing standing(const Search& search) {
  return standing_of(search.input, launches_of(search.group), search.bound_ns);
}

// Returns when a batch of the search is due, relative to those of other searches of the same jobs. Promotions are due
// at once, since a job waits for them.
double Searches::due_of(const Search& search, const BatchRow& row) const {
  if (row.phase > 0) return 0;
  double largest = 0;
  for (const auto& [id, found] : searches_) {
    // A named reference is needed, because clang-tidy's clang rejects lambdas that capture structured bindings.
    const Search& other = found;
    const bool beside =
        other.end == Search::End::kOpen &&
        std::any_of(search.jobs.begin(), search.jobs.end(), [&](int64_t job) { return other.jobs.contains(job); });
    if (beside) largest = std::max(largest, other.saving);
  }
  return due(row.first_trial / kRoundSize, search.saving, largest);
}

// Returns how many rounds of a search may be measured at once: the number of workers for its device, divided by the
// number of searches for that device.
int64_t Searches::most_rounds(const Search& search) {
  if (search.at_once > 0) return search.at_once;
  const auto [at, is_new] = rounds_each_.try_emplace(class_of(search.device, search.row.team), 1);
  if (!is_new) return at->second;
  const int64_t searches = std::count_if(searches_.begin(), searches_.end(), [&](const auto& item) {
    return item.second.end == Search::End::kOpen && !item.second.promoting() && !item.second.background &&
           !item.second.waits && class_of(item.second.device, search.row.team) == at->first;
  });
  const int64_t workers = workers_->serving(search.device, search.row.team);
  at->second = std::max<int64_t>(1, searches == 0 ? workers : (workers + searches - 1) / searches);
  return at->second;
}

// Makes a round in the pool and offers it. `stored`: the row of the round's batch, if the store has the batch already.
void Searches::prepare(Search& search, MakeRound make, const std::optional<BatchRow>& stored) {
  search.working = true;
  search.preparing = stored;
  SearchInput input = search.input;
  for (const auto& [id, batch] : search.open)
    for (const PlannedTrial& candidate : batch.candidates) input.pending.push_back(candidate.plan);
  for (const BatchRow& batch : search.restored)
    for (const PlannedTrial& candidate : batch.candidates) input.pending.push_back(candidate.plan);
  loop_->compute([this, id = search.row.id, input = std::move(input), compiler = search.compiler,
                  make = std::move(make), stored, token = search.token, needed = needed(search)]() mutable {
    Work work(needed);
    input.work = &work;
    auto made = std::make_shared<absl::StatusOr<Round>>(make(input));
    loop_->post([this, id, token, made, stored] { on_prepared(id, token, std::move(*made), stored); });
  });
}

void Searches::on_prepared(int64_t id, uint64_t token, absl::StatusOr<Round> made,
                           const std::optional<BatchRow>& stored) {
  Search* const search = find(id, token);
  if (search == nullptr) {
    if (stored) (void)store_->drop_batch(stored->id);
    return;
  }
  search->working = false;
  mark(*search);
  if (stored && !std::exchange(search->preparing, std::nullopt)) {
    if (search->restored.empty()) leases_->arrived(id);
    return;  // the batch was reported while its candidates were being generated
  }
  if (search->end != Search::End::kOpen) return;
  if (absl::IsCancelled(made.status())) {
    if (stored) search->restored.push_back(*stored);
    return leave_undone(*search);
  }
  if (!made.ok()) return observer_->on_failure(*search, made.status());
  Round& round = *made;
  const bool promotion = round.phase > 0;
  if (!stored && search->elsewhere && round.candidates.empty()) {
    // This version can generate neither the record's plan nor the default schedule, so the record cannot be verified.
    search->elsewhere.reset();
    return observer_->on_lost(*search);
  }
  if (!stored && !promotion && (round.size == 0 || search->stop)) {
    search->exhausted = search->exhausted || round.size == 0;
    return;
  }
  if (!stored && promotion && round.candidates.empty()) {
    if (round.size == 0 || search->gave_up_default || search->stop) return finish(*search, Search::End::kNothing);
    search->gave_up_default = true;
    return;
  }
  const absl::Status status = offer(*search, std::move(round), stored);
  if (!status.ok()) observer_->on_failure(*search, status);
}

absl::Status Searches::offer(Search& search, Round round, const std::optional<BatchRow>& stored) {
  std::optional<BatchRow> row = stored;
  if (stored) {
    // The batch is dropped if this version cannot generate some of its candidates, or if the search was stopped
    // meanwhile.
    if (!round.rejected.empty() || (search.stop && round.phase == 0)) {
      WL_RETURN_IF_ERROR(store_->drop_batch(stored->id).status());
      row.reset();
    }
    if (!row) {
      if (search.restored.empty()) leases_->arrived(search.row.id);
      return absl::OkStatus();
    }
  } else {
    if (round.phase > 0) round.rejected.clear();
    if (!round.candidates.empty()) row = new_batch_row(search, round);
    WL_RETURN_IF_ERROR(store_->put_round(row, search.row.id, round.phase, round.rejected));
    for (const Trial& trial : round.rejected) add_trial(search, {round.phase, trial});
    if (!row) return absl::OkStatus();
  }
  Offer offer;
  offer.search_id = search.row.id;
  offer.device = search.device;
  offer.order = {due_of(search, *row), search.jobs.empty() ? 0 : *search.jobs.begin(),
                 -static_cast<double>(launches_of(search.group) * search.group.bytes)};
  offer.batch = batch_for(search, *row, std::move(round), observer_->trace_of(search));
  offer.row = *row;
  offer.not_by = never_by(search, *row);
  if (row->phase > 0) search.seeds_of[row->phase] = row->check_seed;
  offer.floor_ns = search.floor_ns;
  offer.team = search.row.team;
  offer.rules = rules_of(search);
  search.open.insert_or_assign(row->id, Search::OpenBatch{row->phase, row->candidates});
  for (const PlannedTrial& candidate : row->candidates)
    if (row->phase == 0) search.input.next_trial = std::max(search.input.next_trial, candidate.trial + 1);
  leases_->offer(std::move(offer));
  // Only now, so that a report is never refused between the two calls.
  if (stored && search.restored.empty()) leases_->arrived(search.row.id);
  return absl::OkStatus();
}

// Takes back the open batches. Batches stay open that a worker has or has just reported; their trials arrive later.
void Searches::take_back(Search& search, bool leased_too) {
  std::erase_if(search.restored,
                [&](const BatchRow& batch) { return leases_->take_back(batch.id, batch.lease_id, leased_too); });
  if (search.restored.empty()) leases_->arrived(search.row.id);
  std::erase_if(search.open, [&](const auto& batch) { return leases_->take_back(batch.first, "", leased_too); });
}

}  // namespace wl

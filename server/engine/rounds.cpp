// Rounds of a search: offered as batches, proposed again after a restart, taken back.
#include <algorithm>

#include "server/engine/searches.h"

namespace wl {
namespace {

// ns of timing per candidate while searching: enough to rank. The finalists are timed for longer, side by side.
constexpr int64_t kSearchBudget = 60'000'000;

Recipe recipe_for(const Search& search, bool promotion) {
  Recipe recipe;
  recipe.cold = search.cold;
  recipe.interleave = promotion;
  if (promotion) return recipe;
  recipe.budget_ns = kSearchBudget;
  recipe.best_ns = static_cast<int64_t>(best_ns(search.input.trials));
  return recipe;
}

int64_t launches_of(const PlannedGroup& group) {
  return std::max({group.fused_count, group.between_count, group.part_count});
}

// What a worker judges the code of GPU kernels by.
CodeLimits limits_of(const Device& device) {
  const auto row = target_named(device.target);
  return row.ok() ? code_limits((*row)->gpu) : CodeLimits{};
}

BatchRow new_batch_row(const Search& search, const Round& round) {
  BatchRow row;
  row.id = cat("s", search.row.id, "/p", round.phase, "/t", round.first);
  row.search_id = search.row.id;
  row.phase = round.phase;
  row.first_trial = round.first;
  row.size = round.size;
  row.check_seed = round.phase > 0 ? search.check_seeds.back() : 0;
  return row;
}

std::shared_ptr<const Batch> batch_for(const Search& search, const BatchRow& row, std::vector<Candidate> candidates) {
  auto batch = std::make_shared<Batch>();
  batch->id = row.id;
  batch->phase = row.phase;
  batch->problem = search.group.problem;
  batch->checks.assign(search.checks.begin(), search.checks.begin() + (batch->promotion() ? 2 : 1));
  batch->recipe = recipe_for(search, batch->promotion());
  batch->candidates = std::move(candidates);
  batch->keep_objects = batch->promotion();
  batch->limits = limits_of(search.device);
  return batch;
}

}  // namespace

Standing standing(const Search& search) {
  return standing_of(search.input, launches_of(search.group), search.bound_ns);
}

// Compared with the searches that it shares a job with. Promotions are due at once: they free the job.
double Searches::due_of(const Search& search, const Round& round) const {
  if (round.phase > 0) return 0;
  double largest = 0;
  for (const auto& [id, found] : searches_) {
    const Search& other = found;  // clang-tidy's clang lets no lambda capture a structured binding
    const bool beside =
        other.end == Search::End::kOpen &&
        std::any_of(search.jobs.begin(), search.jobs.end(), [&](int64_t job) { return other.jobs.contains(job); });
    if (beside) largest = std::max(largest, expected_saving(standing(other)));
  }
  return due(round.first / kRoundSize, expected_saving(standing(search)), largest);
}

absl::Status Searches::offer(Search& search, Round round, const std::optional<BatchRow>& known) {
  if (round.phase > 0) round.rejected.clear();
  std::optional<BatchRow> row = known;
  if (!row) {
    if (!round.candidates.empty()) row = new_batch_row(search, round);
    WL_RETURN_IF_ERROR(store_->put_round(row, search.row.id, round.phase, round.rejected));
  }
  if (!row) {
    for (Trial& trial : round.rejected) {
      search.all.push_back({0, trial});
      search.input.trials.push_back(std::move(trial));
    }
    return absl::OkStatus();
  }
  Offer offer;
  offer.search_id = search.row.id;
  offer.device = search.device;
  offer.order = {due_of(search, round), search.jobs.empty() ? 0 : *search.jobs.begin(),
                 -static_cast<double>(launches_of(search.group) * search.group.bytes)};
  offer.batch = batch_for(search, *row, std::move(round.candidates));
  offer.row = *row;
  search.open = Search::OpenRound{row->id, row->phase, std::move(round.rejected)};
  leases_->offer(std::move(offer));
  return absl::OkStatus();
}

// The round that was open when the coordinator went down, proposed again. One that cannot be (another version made it,
// or it was a promotion, whose second seed must not be used twice) is taken back and made anew.
absl::Status Searches::rebuild(Search& search) {
  const BatchRow row = *std::exchange(search.rebuild, std::nullopt);
  absl::Status status;
  Round round;
  if (row.phase == 0 && !search.stop) {
    SearchInput input = search.input;
    input.wanted = row.first_trial + row.size;
    round = next_round(input);
  }
  if (row.phase == 0 && round.first == row.first_trial && round.size == row.size && !round.candidates.empty()) {
    status = offer(search, std::move(round), row);
  } else {
    status = store_->drop_batch(row.id).status();
  }
  leases_->arrived(search.row.id);
  return status;
}

// Takes the open round back. False: it stays, or its report was faster.
bool Searches::drop(Search& search, bool leased_too) {
  if (!search.rebuild && !search.open) return false;
  const std::string id = search.rebuild ? search.rebuild->id : search.open->batch_id;
  const std::string lease = search.rebuild ? search.rebuild->lease_id : std::string();
  if (!leases_->take_back(search.row.id, id, lease, leased_too)) return false;
  search.rebuild.reset();
  search.open.reset();
  return true;
}

}  // namespace wl

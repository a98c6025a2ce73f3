#include "server/engine/searches.h"

#include <algorithm>
#include <limits>
#include <random>

#include "compiler/model/roofline.h"

namespace wl {
namespace {

constexpr int kNear = 2;                // plans of similar groups that are tried first
constexpr int64_t kMostPromotions = 4;  // of a search: a disturbed one is repeated

uint64_t unpredictable() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 31) ^ device();
}

// Takes over what the store has of a search. A round that was open is to be proposed again.
void resume(Search& search, std::vector<PhaseTrial> trials, std::vector<BatchRow> open_batches) {
  int64_t complete = std::numeric_limits<int64_t>::max();
  for (BatchRow& batch : open_batches) {
    if (batch.phase == 0) complete = batch.first_trial;
    search.phase = std::max(search.phase, batch.phase);
    search.rebuild = std::move(batch);
  }
  bool promoted_any = false, promoted_right = false;
  for (PhaseTrial& item : trials) {
    search.phase = std::max(search.phase, item.phase);
    if (item.phase == 0 && item.trial.trial >= complete) continue;
    if (item.phase == 0) search.input.trials.push_back(item.trial);
    promoted_any |= item.phase > 0;
    promoted_right |= item.phase > 0 && item.trial.outcome == Outcome::kCorrect;
    search.all.push_back(std::move(item));
  }
  search.gave_up_default = promoted_any && !promoted_right;
}

}  // namespace

absl::StatusOr<Search> Searches::open(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                      const Machine& machine) {
  Search search;
  search.row = row;
  search.group = group;
  search.device = device;
  auto opened = compiler_->open(group.graph, machine);
  if (!opened.ok()) {
    // The group has no schedule at all: its parts may still have one.
    search.end = Search::End::kNothing;
    return search;
  }
  search.compiler = *std::move(opened);
  search.input.compiler = search.compiler.get();
  search.input.strategy = row.strategy;
  search.input.seed = row.seed;
  const auto alone = leases_->hold_reports();
  WL_ASSIGN_OR_RETURN(std::vector<PhaseTrial> trials, store_->trials(row.id));
  // An older version may have written them.
  for (PhaseTrial& each : trials) each.trial.plan = search.compiler->current(each.trial.plan);
  WL_ASSIGN_OR_RETURN(std::vector<BatchRow> batches, store_->open_batches(row.id));
  resume(search, std::move(trials), std::move(batches));
  if (search.rebuild) leases_->expect(row.id);
  return search;
}

absl::StatusOr<Search*> Searches::take_up(const SearchRow& row, const PlannedGroup& group, const Device& device,
                                          const Machine& machine, const std::vector<KnownPlan>& known) {
  if (Search* live = find(row.id)) return live;
  WL_ASSIGN_OR_RETURN(Search search, open(row, group, device, machine));
  if (search.compiler) search.input.near = search.compiler->nearest(known, kNear);
  search.bound_ns = roofline(group.graph, machine).ns();
  return &searches_.emplace(row.id, std::move(search)).first->second;
}

Search* Searches::find(int64_t id) {
  const auto found = searches_.find(id);
  return found == searches_.end() ? nullptr : &found->second;
}

void Searches::ask_checks(Search& search) {
  if (search.checks_asked) return;
  search.checks_asked = true;
  search.check_seeds = {first_check_seed(search.group.key), unpredictable()};
  loop_->compute([this, id = search.row.id, seeds = search.check_seeds, group = search.group.graph,
                  machine = machine_of(search.device)] {
    // A compiler object of its own: the engine's thread uses the other one meanwhile.
    absl::StatusOr<std::vector<Check>> checks = std::vector<Check>();
    absl::StatusOr<std::unique_ptr<GroupCompiler>> opened =
        machine.ok() ? compiler_->open(group, *machine)
                     : absl::StatusOr<std::unique_ptr<GroupCompiler>>(machine.status());
    if (!opened.ok()) checks = opened.status();
    for (size_t i = 0; checks.ok() && i < seeds.size(); ++i) {
      auto check = (*opened)->check(seeds[i]);
      if (check.ok()) {
        checks->push_back(*std::move(check));
      } else {
        checks = check.status();
      }
    }
    loop_->post([this, id, made = std::move(checks)] {
      Search* live = find(id);
      if (live == nullptr) return;
      if (!made.ok()) return observer_->on_failure(*live, made.status());
      live->checks = *made;
      mark(*live);
    });
  });
}

void Searches::step(int64_t id) {
  Search* const found = find(id);
  if (found == nullptr || found->end != Search::End::kOpen || found->open) return;
  Search& search = *found;
  if (search.cancelled && !any_correct(search.input.trials)) return finish(search, Search::End::kNothing);
  if (search.checks.empty()) return ask_checks(search);
  absl::Status status;
  if (search.rebuild) status = rebuild(search);
  while (status.ok() && !search.open) {
    const absl::StatusOr<bool> lives = next(search);
    if (lives.ok() && !*lives) return;
    status = lives.status();
  }
  if (!status.ok()) observer_->on_failure(search, status);
}

// Offers the next round or promotion, or notes why there is none. False: the search has ended and may be gone.
absl::StatusOr<bool> Searches::next(Search& search) {
  const auto offered = [&](Round round) -> absl::StatusOr<bool> {
    WL_RETURN_IF_ERROR(offer(search, std::move(round), std::nullopt));
    return true;
  };
  if (search.elsewhere) return offered(transfer_round(search.input, ++search.phase, *search.elsewhere));
  if (!search.stop && !search.exhausted && (search.input.wanted > 1 || search.gave_up_default)) {
    // Where time is short, others need it more.
    search.exhausted = search.budget_s > 0 && is_spent(standing(search));
    if (search.exhausted) return true;
    SearchInput input = search.input;
    if (search.gave_up_default) input.wanted = std::max<int64_t>(input.wanted, kRoundSize);
    Round round = next_round(input);
    search.exhausted = round.size == 0;
    return search.exhausted ? true : offered(std::move(round));
  }
  Round round = final_round(search.input, ++search.phase, search.cancelled ? 2 : kFinalists);
  if (round.size > 0 && !round.candidates.empty()) return offered(std::move(round));
  if (round.size == 0 || search.gave_up_default || search.stop) {
    finish(search, Search::End::kNothing);
    return false;
  }
  search.gave_up_default = true;
  return true;
}

void Searches::on_trials(int64_t id, const std::string& batch_id, std::vector<Trial> trials) {
  Search* const search = find(id);
  if (search == nullptr || !search->open || search->open->batch_id != batch_id) return;
  Search::OpenRound round = *std::exchange(search->open, std::nullopt);
  for (Trial& trial : round.rejected) trials.push_back(std::move(trial));
  std::sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.trial < b.trial; });
  for (Trial& trial : trials) {
    search->all.push_back({round.phase, trial});
    if (round.phase == 0) search->input.trials.push_back(std::move(trial));
  }
  if (round.phase > 0) {
    const absl::Status status = conclude(*search);
    if (!status.ok()) observer_->on_failure(*search, status);
    return;
  }
  mark(*search);
  observer_->on_round(*search);
}

// After a promotion. The search may be gone afterwards.
absl::Status Searches::conclude(Search& search) {
  std::vector<Trial> finals, all;
  for (const PhaseTrial& item : search.all) {
    if (item.phase == search.phase) finals.push_back(item.trial);
    all.push_back(item.trial);
  }
  const bool may_repeat = search.phase < kMostPromotions && !search.stop && !search.elsewhere;
  if (may_repeat && is_disturbed(finals, search.input.trials)) {
    mark(search);
    return absl::OkStatus();
  }
  SearchInput input = search.input;
  // What was cut short may be searched on: it counts as a wish for what it got.
  if (search.cancelled) input.wanted = std::max<int64_t>(1, static_cast<int64_t>(input.trials.size()));
  const std::optional<KernelRecord> elsewhere = std::exchange(search.elsewhere, std::nullopt);
  double budget_s = search.budget_s;
  if (elsewhere) {
    input.strategy = elsewhere->strategy;
    input.wanted = elsewhere->trials_asked;
    budget_s = elsewhere->budget_s;
  }
  WL_ASSIGN_OR_RETURN(std::optional<KernelRecord> record,
                      record_of_finals(input, search.group, search.device, finals, all, search.check_seeds, budget_s));
  if (elsewhere && !holds_here(*elsewhere, finals)) {
    mark(search);
    return absl::OkStatus();
  }
  if (record) return take_record(search, *record, elsewhere.has_value());
  if (search.gave_up_default || search.input.wanted > 1 || search.stop) {
    finish(search, Search::End::kNothing);
  } else {
    search.gave_up_default = true;
    mark(search);
  }
  return absl::OkStatus();
}

absl::Status Searches::take_record(Search& search, const KernelRecord& record, bool transferred) {
  if (search.stop) {
    // What was cut short, a --retune above all, does not displace a better record.
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> known, store_->record_by_key(record.key, record.environment));
    if (known && undisturbed_ns(known->record.samples_ns) <= undisturbed_ns(record.samples_ns)) {
      observer_->on_record(search, known->record, SearchObserver::Origin::kKnown);
      finish(search, Search::End::kRecord);
      return absl::OkStatus();
    }
  }
  WL_RETURN_IF_ERROR(store_->promote(record, search.row.id));
  observer_->on_record(search, record,
                       transferred ? SearchObserver::Origin::kTransferred : SearchObserver::Origin::kSearched);
  finish(search, Search::End::kRecord);
  return absl::OkStatus();
}

void Searches::finish(Search& search, Search::End end) {
  search.end = end;
  observer_->on_end(search);
}

void Searches::stop(Search& search, bool cancelled, bool leased_too) {
  search.stop = true;
  search.cancelled = cancelled;
  // A promotion under way is what is wanted now.
  if (search.searching() || search.rebuild) drop(search, leased_too);
  mark(search);
}

void Searches::abandon(Search& search) {
  drop(search, true);
  search.end = Search::End::kNothing;
}

void Searches::leave(int64_t job_id) {
  for (auto at = searches_.begin(); at != searches_.end();) {
    Search& search = at->second;
    search.jobs.erase(job_id);
    if (!search.jobs.empty()) {
      ++at;
      continue;
    }
    if (search.end == Search::End::kOpen) drop(search, true);
    leases_->arrived(at->first);
    at = searches_.erase(at);
  }
}

}  // namespace wl

// What follows from the trials of a promotion: the promotion is repeated, is confirmed, or makes the record of the key.
#include <algorithm>

#include "server/engine/searches.h"

namespace wl {
namespace {

// Maximum number of promotions of a search. A promotion whose timing was disturbed is repeated until this number is
// reached.
constexpr int64_t kMostPromotions = 4;

}  // namespace

// Concludes a promotion whose trials were stored before the coordinator restarted. Since workers come back one by one,
// it first waits for a while for a worker that may confirm the promotion.
void Searches::conclude_stored(Search& search) {
  std::set<std::string> known;
  for (const PhaseTrial& item : search.all)
    if (item.phase == search.phase) add_kin(item.name(), &known);
  const std::vector<std::string> here = workers_->names_here(search.device, search.row.team);
  const bool all_known = std::all_of(here.begin(), here.end(), [&](const auto& name) {
    return known.contains(principal_of(name)) || known.contains(on_machine(workers_->machine_of(name)));
  });
  // Returning here means to wait: the next tick looks for workers again.
  if (all_known && Clock::now() - search.taken_up < workers_->away()) return;
  search.unconcluded = false;
  const absl::Status status = conclude(search, /*may_ask=*/true);
  if (!status.ok()) observer_->on_failure(search, status);
}

// Decides what follows from a promotion and its confirmations. `may_ask`: whether other workers may be asked to
// confirm. The search may no longer exist afterwards.
absl::Status Searches::conclude(Search& search, bool may_ask) {
  std::vector<PhaseTrial> finals;
  std::vector<Trial> measured;
  bool asked = false;
  for (const PhaseTrial& item : search.all) {
    asked |= confirms(item.phase) && promotion_of(item.phase) == search.phase;
    if (item.phase == search.phase) measured.push_back(item.trial);
    if (item.phase == search.phase && !search.disputed.contains(item.trial.plan)) finals.push_back(item);
  }
  std::sort(finals.begin(), finals.end(), [](auto& a, auto& b) { return a.trial.trial < b.trial.trial; });
  const bool may_repeat = search.phase < kMostPromotions && !search.stop && !search.elsewhere && !asked;
  if (may_repeat && is_disturbed(measured, search.input.trials)) {
    mark(search);
    return absl::OkStatus();
  }
  SearchInput input = search.input;
  // If a job has asked for more trials meanwhile, the search goes on. In that case, and if the search was cut short,
  // the record satisfies only requests for at most as many trials as it has, so that a request for more continues the
  // search.
  const bool goes_on = !search.stop && !search.exhausted && !search.elsewhere && input.needed > 1 &&
                       input.needed > static_cast<int64_t>(input.trials.size());
  if (search.cancelled || goes_on) input.needed = std::max<int64_t>(1, static_cast<int64_t>(input.trials.size()));
  double budget_s = search.budget_s;
  if (search.elsewhere) {
    input.strategy = search.elsewhere->strategy;
    input.needed = search.elsewhere->trials_asked;
    budget_s = search.elsewhere->budget_s;
  }
  WL_ASSIGN_OR_RETURN(std::optional<KernelRecord> record, record_of_finals(input, search.group, search.device, finals,
                                                                           search.all, search.check_seeds, budget_s));
  if (record) {
    switch (confirmed(search, finals, *record, may_ask)) {
      case Confirmed::kYes:
        break;
      case Confirmed::kAsked:
        return absl::OkStatus();
      case Confirmed::kRefuted:
        mark(search);  // the search's next step has other workers repeat the promotion
        return absl::OkStatus();
      case Confirmed::kDisputed:
        // The disputed finalist is set aside, and the search is concluded with its next finalist.
        return conclude(search, may_ask);
    }
  } else if (may_settle(search)) {
    search.settle = true;
    search.disputed.erase(search.default_plan);
    return conclude(search, may_ask);
  } else if (!search.disputed.empty()) {
    return absl::AbortedError(search.dispute);
  }
  search.interim = false;
  const std::optional<KernelRecord> elsewhere = std::exchange(search.elsewhere, std::nullopt);
  if (elsewhere && !holds_here(*elsewhere, measured)) {
    mark(search);
    observer_->on_lost(search);
    return absl::OkStatus();
  }
  if (record && options_.vouch && is_built_here(search, *record)) options_.vouch(&*record);
  // A search that only verifies a record of another environment goes on if a job that joined it needs more trials than
  // that record had.
  const bool needs_more = elsewhere && !search.stop && search.input.needed > elsewhere->trials_asked;
  return take_finals(search, record, elsewhere.has_value(), goes_on || needs_more);
}

// Stores the outcome of a promotion, after its confirmation if there was one.
absl::Status Searches::take_finals(Search& search, const std::optional<KernelRecord>& record, bool transferred,
                                   bool goes_on) {
  if (record && goes_on) {
    WL_RETURN_IF_ERROR(promote(search, *record));
    observer_->on_record(search, *record,
                         transferred ? SearchObserver::Origin::kTransferred : SearchObserver::Origin::kSearched);
    mark(search);
    observer_->on_interim(search);
    return absl::OkStatus();
  }
  if (record) return take_record(search, *record, transferred);
  const bool had_rounds = search.input.needed > 1 && !search.input.trials.empty();
  if (search.gave_up_default || had_rounds || search.stop) {
    finish(search, Search::End::kNothing);
  } else {
    search.gave_up_default = true;
    mark(search);
  }
  return absl::OkStatus();
}

// Stores the record. A team's confirmed record becomes shared if the team's rules say so, unless the shared record of
// the key is at least as fast.
absl::Status Searches::promote(const Search& search, const KernelRecord& record) {
  bool shared = !search.row.team.empty() && is_confirmed(record) && options_.rules(search.row.team).publishes;
  if (shared) {
    WL_ASSIGN_OR_RETURN(const std::optional<RecordRow> known, store_->record_by_key(record.key, record.environment));
    shared = !known || undisturbed_ns(record.samples_ns) < undisturbed_ns(known->record.samples_ns);
  }
  return store_->promote(record, search.row.id, shared);
}

absl::Status Searches::take_record(Search& search, const KernelRecord& record, bool transferred) {
  search.winner = known_plan(record);
  if (search.stop || search.background) {
    // If the search was cut short, or if nobody asked for it, its record does not replace a faster one, such as the
    // record that --retune searches anew, or one that another team or coordinator has made.
    WL_ASSIGN_OR_RETURN(std::optional<RecordRow> known,
                        store_->record_by_key(record.key, record.environment, {.team = search.row.team}));
    // Nor does a kernel that was tried in programs and made them slower.
    WL_ASSIGN_OR_RETURN(const bool lost,
                        store_->was_taken_back(record.key, record.environment, search.row.team, record.plan));
    if (known && (lost || undisturbed_ns(known->record.samples_ns) <= undisturbed_ns(record.samples_ns))) {
      observer_->on_record(search, known->record, SearchObserver::Origin::kKnown);
      finish(search, Search::End::kRecord);
      return absl::OkStatus();
    }
  }
  WL_RETURN_IF_ERROR(promote(search, record));
  observer_->on_record(search, record,
                       transferred ? SearchObserver::Origin::kTransferred : SearchObserver::Origin::kSearched);
  finish(search, Search::End::kRecord);
  return absl::OkStatus();
}

}  // namespace wl

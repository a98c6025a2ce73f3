// Confirmations of promotions: which workers are asked, and what follows from their claims.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "server/engine/searches.h"

namespace wl {
namespace {

// Maximum number of claims on a finalist: the claim of the worker that promoted it, and those of up to three other
// workers.
constexpr size_t kMostClaims = 4;

// Removes claims of workers that may be the same as the worker of an earlier claim (Workers::may_be_one()), since their
// claims are no second opinion.
void leave_out_repeats(const Workers& workers, std::vector<Claim>* claims) {
  std::vector<Claim> apart;
  for (Claim& claim : *claims) {
    const bool repeats = std::any_of(apart.begin(), apart.end(), [&](const Claim& other) {
      return !claim.worker.empty() && workers.may_be_one(claim.worker, other.worker);
    });
    if (!repeats) apart.push_back(std::move(claim));
  }
  *claims = std::move(apart);
}

}  // namespace

void Searches::add_kin(const std::string& worker, std::set<std::string>* principals) const {
  principals->insert(principal_of(worker));
  if (const std::string machine = workers_->machine_of(worker); !machine.empty())
    principals->insert(on_machine(machine));
}

// Returns the principals and machines whose workers must not get a batch of the search. The first candidate of a
// confirmation must not go to workers that measured it before, in the promotion or in another confirmation. The second
// candidate, the default schedule, may go to workers that measured it.
std::set<std::string> Searches::never_by(const Search& search, const BatchRow& row) const {
  std::set<std::string> principals = search.refuted;
  if (!confirms(row.phase)) return principals;
  for (const PhaseTrial& item : search.all) {
    if (item.phase == 0 || item.worker.empty() || promotion_of(item.phase) != promotion_of(row.phase)) continue;
    if (!row.candidates.empty() && row.candidates.front().plan == item.trial.plan) add_kin(item.name(), &principals);
  }
  return principals;
}

void Searches::take_confirmed(const Search& search, const Claim& first, const Claim& second, KernelRecord* record) {
  confirm(first, second, record);
  record->check_seeds = {search.check_seeds.front()};
  for (const Claim* claim : {&first, &second})
    if (const auto seed = search.seeds_of.find(claim->phase); seed != search.seeds_of.end())
      record->check_seeds.push_back(seed->second);
  record->digest = record_digest(*record);
}

// Whether a worker is connected that has made no claim on a kernel and may be asked about it.
bool Searches::somebody_is_left(const Search& search, const std::vector<Claim>& claims) const {
  const std::vector<std::string> here = workers_->names_here(search.device, search.row.team);
  return std::any_of(here.begin(), here.end(), [&](const auto& name) {
    return !search.refuted.contains(principal_of(name)) &&
           std::none_of(claims.begin(), claims.end(),
                        [&](const Claim& one) { return workers_->may_be_one(name, one.worker); });
  });
}

// Sets aside a finalist on which workers disagree, so that it is not served, and returns kDisputed. A default schedule
// is instead served, and kYes returned, if the search settles for it and this coordinator built its object.
Searches::Confirmed Searches::dispute(Search& search, const KernelRecord& record, std::string what,
                                      std::string remedy) {
  if (search.settle && is_built_here(search, record)) {
    spdlog::warn("audit: {}; nobody decides, and the default schedule is served as this coordinator builds it", what);
    return Confirmed::kYes;
  }
  search.disputed.insert(record.plan);
  search.dispute = cat(what, "; ", remedy);
  spdlog::warn("audit: {}", search.dispute);
  return Confirmed::kDisputed;
}

// `first` and `second` are the indices of two claims that agree. Refutes the worker that promoted the kernel if its
// claim contradicts them, and returns whether it did. Other workers whose claims contradict them are only logged.
bool Searches::refutes_promoter(Search& search, const std::string& what, const std::vector<Claim>& claims, size_t first,
                                size_t second) {
  bool refuted = false;
  for (size_t i = 0; i < claims.size(); ++i) {
    const std::string why = refutation(claims[i], claims[first], claims[second]);
    if (i == first || i == second || why.empty()) continue;
    refuted |= i == 0;
    spdlog::warn("audit: {}: worker {} was refuted by {} and {}: {}", what, shown_name(claims[i].worker),
                 shown_name(claims[first].worker), shown_name(claims[second].worker), why);
  }
  if (refuted) refute(search, principal_of(claims[0].worker));
  return refuted;
}

// Decides whether the winner of a promotion may be served: two workers must agree on it, unless there is no other
// worker to ask. If this coordinator compiles kernels itself with the same compiler version as the worker, the two
// must also have made equal objects.
Searches::Confirmed Searches::confirmed(Search& search, const std::vector<PhaseTrial>& finals, KernelRecord& record,
                                        bool may_ask) {
  if (awaits_build(search, record, may_ask)) return Confirmed::kAsked;
  std::vector<Claim> claims = claims_on(record.plan, record.default_plan, search.phase, search.all);
  const std::string what = cat("kernel ", record.key, ", plan ", record.plan);
  if (const auto foreign = drop_foreign_objects(search, record, &claims)) {
    const std::string promoter = principal_of(record.measured_by);
    const std::vector<std::string> here = workers_->names_here(search.device, search.row.team);
    const bool others = std::any_of(here.begin(), here.end(), [&](const std::string& name) {
      return principal_of(name) != promoter && !search.refuted.contains(principal_of(name));
    });
    if (!others)
      return dispute(search, record, cat(what, ": ", *foreign), "stop that worker, start another one, and ask again");
    refute(search, promoter);
    return Confirmed::kRefuted;
  }
  leave_out_repeats(*workers_, &claims);
  const bool can_ask = may_ask && somebody_is_left(search, claims) && claims.size() < kMostClaims;
  // Two workers' times may differ because of other load or because one worker lies. So another worker is asked, if
  // there is one.
  auto pair = agreed(claims, Closeness::kSameTime);
  if (!pair && !can_ask) pair = agreed(claims, Closeness::kSameOrder);
  if (pair) {
    const Claim &first = claims[pair->first], &second = claims[pair->second];
    if (refutes_promoter(search, what, claims, pair->first, pair->second)) return Confirmed::kRefuted;
    if (pair->first == 0 || difference(claims[0], first, Closeness::kSameOrder).empty()) {
      take_confirmed(search, first, second, &record);
      return Confirmed::kYes;
    }
  } else if (can_ask) {
    ask(search, finals, record);
    return Confirmed::kAsked;
  }
  if (claims.size() <= 1) return Confirmed::kYes;
  const std::string denied = difference(claims[0], claims[pair ? pair->first : 1], Closeness::kSameOrder);
  const std::string promoter = principal_of(claims[0].worker);
  const std::vector<std::string> here = workers_->names_here(search.device, search.row.team);
  if (std::none_of(here.begin(), here.end(), [&](const auto& name) { return principal_of(name) == promoter; })) {
    spdlog::warn("audit: {}: {}; worker {} has gone, and others repeat what it measured", what, denied,
                 claims[0].worker);
    refute(search, promoter);
    return Confirmed::kRefuted;
  }
  return dispute(search, record, cat(what, ": ", denied),
                 "nothing is promoted that two workers do not agree on: stop the one that is wrong, or start a third "
                 "of the same kind, and ask again");
}

// Offers the winner and the default schedule as a batch to a worker that has not measured the winner.
void Searches::ask(Search& search, const std::vector<PhaseTrial>& finals, const KernelRecord& record) {
  int64_t number = 0;
  for (const PhaseTrial& item : search.all)
    if (promotion_of(item.phase) == search.phase) number = std::max(number, item.phase / kConfirmation);
  std::vector<PlannedTrial> candidates;
  for (const std::string& plan : {record.plan, record.default_plan}) {
    const auto final = std::find_if(finals.begin(), finals.end(), [&](const auto& f) { return f.trial.plan == plan; });
    if (final != finals.end() && (candidates.empty() || candidates.front().plan != plan))
      candidates.push_back({final->trial.trial, plan});
  }
  const int64_t phase = search.phase + (number + 1) * kConfirmation;
  prepare(
      search,
      [phase, candidates, seed = unpredictable()](const SearchInput& input) {
        return confirming_round(input, phase, candidates, seed);
      },
      std::nullopt);
}

// Removes the trials of a principal's workers from a search, and gives these workers no more batches of the search.
void Searches::refute(Search& search, const std::string& principal) {
  search.refuted.insert(principal);
  search.input.trials.clear();
  search.tally = {};
  std::vector<PhaseTrial> all = std::exchange(search.all, {});
  for (const PhaseTrial& item : all)
    if (principal_of(item.name()) != principal) add_trial(search, item);
  search.exhausted = false;
}

void Searches::revoke(const std::string& principal) {
  for (auto& [id, search] : searches_) {
    refute(search, principal);
    if (search.end == Search::End::kOpen) mark(search);
  }
}

// Ends a confirmation for which no worker is left.
void Searches::confirm_no_longer(Search& search) {
  std::erase_if(search.open, [&](const auto& batch) {
    return !leases_->can_be_had(batch.first) && leases_->take_back(batch.first, "", /*leased_too=*/false);
  });
  if (!search.open.empty()) return;
  const absl::Status status = conclude(search, /*may_ask=*/false);
  if (!status.ok()) observer_->on_failure(search, status);
}

}  // namespace wl

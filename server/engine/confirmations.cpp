// Confirmations of promotions: which worker is asked, and what follows from what it says.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "server/engine/searches.h"

namespace wl {
namespace {

constexpr size_t kMostClaims = 4;  // on a finalist: its promotion's, and those of workers who were asked

// What is said on the machine of another claim is no second opinion.
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

// Whose workers must not be given a batch of the search. A confirmation: whoever has measured its candidates in the
// promotion or for it.
std::set<std::string> Searches::never_by(const Search& search, const BatchRow& row) const {
  std::set<std::string> principals = search.refuted;
  if (!confirms(row.phase)) return principals;
  for (const PhaseTrial& item : search.all) {
    if (item.phase == 0 || item.worker.empty() || promotion_of(item.phase) != promotion_of(row.phase)) continue;
    if (std::any_of(row.candidates.begin(), row.candidates.end(),
                    [&](const PlannedTrial& candidate) { return candidate.plan == item.trial.plan; }))
      add_kin(item.name(), &principals);
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

// Whether the winner of a promotion may be served. Two workers agree on it, or there is no other worker to ask.
Searches::Confirmed Searches::confirmed(Search& search, const std::vector<PhaseTrial>& finals, KernelRecord& record,
                                        bool may_ask) {
  std::vector<Claim> claims = claims_on(record.plan, record.default_plan, search.phase, search.all);
  leave_out_repeats(*workers_, &claims);
  const std::string what = cat("kernel ", record.key, ", plan ", record.plan);
  const std::vector<std::string> here = workers_->names_here(search.device, search.row.team);
  std::vector<std::string> others = here;
  std::erase_if(others, [&](const auto& name) {
    return search.refuted.contains(principal_of(name)) ||
           std::any_of(claims.begin(), claims.end(),
                       [&](const Claim& one) { return workers_->may_be_one(name, one.worker); });
  });
  const bool can_ask = may_ask && !others.empty() && claims.size() < kMostClaims;
  // Load alone tells times apart, or a worker that lies: another one decides, where there is one.
  auto pair = agreed(claims, Closeness::kSameTime);
  if (!pair && !can_ask) pair = agreed(claims, Closeness::kSameOrder);
  if (pair) {
    const Claim &first = claims[pair->first], &second = claims[pair->second];
    bool refuted = false;
    for (size_t i = 0; i < claims.size(); ++i) {
      const std::string why = refutation(claims[i], first, second);
      if (i == pair->first || i == pair->second || why.empty()) continue;
      refuted |= i == 0;
      spdlog::warn("audit: {}: worker {} was refuted by {} and {}: {}", what, claims[i].worker, first.worker,
                   second.worker, why);
    }
    if (refuted) {
      refute(search, principal_of(claims[0].worker));
      return Confirmed::kRefuted;
    }
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
  if (std::none_of(here.begin(), here.end(), [&](const auto& name) { return principal_of(name) == promoter; })) {
    spdlog::warn("audit: {}: {}; worker {} has gone, and others repeat what it measured", what, denied,
                 claims[0].worker);
    refute(search, promoter);
    return Confirmed::kRefuted;
  }
  search.disputed.insert(record.plan);
  search.dispute = cat(what, ": ", denied,
                       "; nothing is promoted that two workers do not agree on: stop the one that is wrong, or start a "
                       "third of the same kind, and ask again");
  spdlog::warn("audit: {}", search.dispute);
  return Confirmed::kDisputed;
}

// Offers the winner and the default schedule to a worker that has not measured them.
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

// What its workers measured for the search is forgotten, and they get no more of it.
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

// Ends a confirmation that no worker is left for.
void Searches::confirm_no_longer(Search& search) {
  std::erase_if(search.open, [&](const auto& batch) {
    return !leases_->can_be_had(batch.first) && leases_->take_back(batch.first, "", /*leased_too=*/false);
  });
  if (!search.open.empty()) return;
  const absl::Status status = conclude(search, /*may_ask=*/false);
  if (!status.ok()) observer_->on_failure(search, status);
}

}  // namespace wl

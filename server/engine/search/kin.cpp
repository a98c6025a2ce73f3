// Searches of groups that differ in extents alone, such as the blocks of a network, begin one after another, so that
// each tries the winners of those before it first (docs/design/search.md#first-round).
#include <algorithm>

#include "server/engine/devices.h"
#include "server/engine/searches.h"

namespace wl {

// Whether the search should wait for another one: a job that needs both has kin of the group whose search came earlier
// and has not ended, and the workers have enough to do with searches that do not wait.
bool Searches::waits_for_kin(const Search& search) const {
  // A search that only verifies a plan, or goes on from trials, gains nothing. With a limited budget, the first kernels
  // of all groups come first.
  const bool begins = search.all.empty() && search.open.empty() && !search.elsewhere && !search.stop;
  if (!begins || search.input.needed <= 1 || search.budget_s > 0) return false;
  const std::string device = class_of(search.device, search.row.team);
  int64_t busy = 0;
  bool kin = false;
  for (const auto& [id, other] : searches_) {
    if (id == search.row.id || other.end != Search::End::kOpen || class_of(other.device, other.row.team) != device)
      continue;
    busy += other.waits ? 0 : 1;
    const bool shares_job = std::any_of(search.jobs.begin(), search.jobs.end(),
                                        [&jobs = other.jobs](int64_t job) { return jobs.contains(job); });
    // A search that another job needs for more trials may take much longer.
    const bool ends_soon = other.input.needed <= search.input.needed;
    kin |= id < search.row.id && other.group.kin == search.group.kin && shares_job && ends_soon;
  }
  return kin && busy >= workers_->serving(search.device, search.row.team);
}

// Returns the known winners, with those of searches of the group's kin that have ended.
KnownPlans Searches::with_winners_of_kin(const Search& search) const {
  std::vector<KnownPlan> plans;
  for (const auto& [id, other] : searches_)
    if (id != search.row.id && other.winner && other.group.kin == search.group.kin && other.row.team == search.row.team)
      plans.push_back(*other.winner);
  if (plans.empty()) return search.known;
  plans.insert(plans.end(), search.known->begin(), search.known->end());
  return std::make_shared<const std::vector<KnownPlan>>(std::move(plans));
}

// Returns the known winners for kin of the group.
KnownPlans Searches::only_of_kin(const Search& search) const {
  const KnownPlans all = with_winners_of_kin(search);
  std::vector<KnownPlan> plans;
  std::copy_if(all->begin(), all->end(), std::back_inserter(plans),
               [&](const KnownPlan& plan) { return plan.kin == search.group.kin; });
  return std::make_shared<const std::vector<KnownPlan>>(std::move(plans));
}

void Searches::mark_waiting() {
  for (const auto& [id, search] : searches_)
    if (search.waits && search.end == Search::End::kOpen) mark(search);
}

}  // namespace wl

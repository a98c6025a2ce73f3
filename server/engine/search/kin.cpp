// Searches of groups that differ in extents alone, such as the blocks of a network, begin one after another, so that
// each tries the winners of those before it first (docs/design/search.md#first-round).
#include <algorithm>

#include "absl/strings/str_split.h"
#include "server/engine/devices.h"
#include "server/engine/searches.h"

namespace wl {

std::string kin_of(const std::string& group_text) {
  std::string kin;
  for (absl::string_view line : absl::StrSplit(group_text, '\n')) {
    // The type follows the last " : ", as in `%2 = exp %1 : f32[64,32]`.
    const size_t type = line.rfind(" : ");
    const size_t open = type == line.npos ? type : line.find('[', type), close = line.find(']', open);
    if (open == line.npos || close == line.npos) {
      append(&kin, line, "\n");
      continue;
    }
    const absl::string_view extents = line.substr(open, close - open);
    append(&kin, line.substr(0, open), std::count(extents.begin(), extents.end(), ','), line.substr(close), "\n");
  }
  return kin;
}

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
    kin |= id < search.row.id && other.kin == search.kin && shares_job && ends_soon;
  }
  return kin && busy >= workers_->serving(search.device, search.row.team);
}

// Returns the known winners, with those of searches of the group's kin that have ended.
KnownPlans Searches::with_winners_of_kin(const Search& search) const {
  std::vector<KnownPlan> plans;
  for (const auto& [id, other] : searches_)
    if (id != search.row.id && other.winner && other.kin == search.kin && other.row.team == search.row.team)
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
               [&](const KnownPlan& plan) { return kin_of(plan.graph) == search.kin; });
  return std::make_shared<const std::vector<KnownPlan>>(std::move(plans));
}

void Searches::mark_waiting() {
  for (const auto& [id, search] : searches_)
    if (search.waits && search.end == Search::End::kOpen) mark(search);
}

}  // namespace wl
